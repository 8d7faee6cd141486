"""How connections go, what stands out, and the flows of a capture beside those of pcapsum, which shares no code with this tool."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import unittest
from typing import Any, Dict, List, Tuple

from flows import service
from flows.series import Series
from framework.plugins.protocol import ToolResult

import traffic
from support import HERE, ToolCase
from tool import PcapFlowAnalyzer

A, B = bytes([10, 0, 0, 1]), bytes([198, 51, 100, 2])
T0, SECOND = traffic.BEGIN, 1_000_000_000
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
PCAPSUM = os.path.join(os.path.dirname(HERE), "pcap_metadata_summary", "bin", "pcapsum")
Frames = List[Tuple[int, bytes]]


def segment(forward: bool, flags: int, seq: int = 0, payload: bytes = b"", port: int = 40000, service_port: int = 80) -> bytes:
    """A TCP segment between A and B."""
    if forward:
        return traffic.ether(traffic.v4(A, B, 6, traffic.tcp(port, service_port, flags, seq, 1, payload)))
    return traffic.ether(traffic.v4(B, A, 6, traffic.tcp(service_port, port, flags, seq, 1, payload)))


def connection(at: int, port: int, to: int, sent: bytes = b"x", got: bytes = b"y") -> Frames:
    """A whole connection, closed as usual."""
    steps = ((True, SYN, 9, b""), (False, SYN | ACK, 99, b""), (True, ACK, 10, b""), (True, PSH | ACK, 10, sent), (False, PSH | ACK, 100, got),
             (True, FIN | ACK, 10 + len(sent), b""), (False, FIN | ACK, 100 + len(got), b""))  # fmt: skip
    return [(at + i * 1_000_000, segment(way, flags, seq, data, port, to)) for i, (way, flags, seq, data) in enumerate(steps)]


class Flows(ToolCase):
    tool = PcapFlowAnalyzer()

    def flows(self, frames: List[bytes], **payload: Any) -> Dict[str, Any]:
        """The result for frames ten milliseconds apart."""
        return self.run_on(traffic.pcap((T0 + i * 10_000_000, data) for i, data in enumerate(frames)), **payload)

    def test_the_states_of_connections(self) -> None:
        f, b = True, False
        hello, answer, ack = segment(f, SYN), segment(b, SYN | ACK), segment(f, ACK, 1)
        data = segment(f, PSH | ACK, 1, b"data")
        for state, frames in (
            ("S0", [hello, hello]),
            ("S1", [hello, answer, ack, data]),
            ("SF", [hello, answer, ack, segment(f, FIN | ACK, 1), segment(b, FIN | ACK, 1)]),
            ("REJ", [hello, segment(b, RST | ACK)]),
            ("S2", [hello, answer, ack, segment(f, FIN | ACK, 1), segment(b, ACK, 1)]),
            ("S3", [hello, answer, ack, segment(b, FIN | ACK, 1)]),
            ("RSTO", [hello, answer, ack, data, segment(f, RST, 5)]),
            ("RSTR", [hello, answer, ack, data, segment(b, RST, 1)]),
            ("RSTOS0", [hello, segment(f, RST, 1)]),
            ("RSTRH", [answer, segment(b, RST, 1)]),
            ("SH", [hello, segment(f, FIN, 1)]),
            ("SHR", [answer, segment(b, FIN | ACK, 1)]),
            ("OTH", [data, segment(b, ACK, 1)]),
        ):
            result = self.flows(frames)
            (flow,) = result["flows"]
            self.assertEqual((flow["state"], result["tcp_states"][0]["state"], flow["source"], flow["destination_port"]), (state, state, "10.0.0.1", 80), state)

    def test_a_flow_is_cited_and_counted(self) -> None:
        first = [traffic.arp(1, A, B)]
        frames = first + [data for _, data in connection(T0, 40000, 443, b"four", b"seventeen")]
        result = self.flows(frames)
        (flow,) = result["flows"]
        self.assertEqual((flow["first_frame"], flow["first_offset"], flow["last_frame"]), (2, 24 + 16 + len(first[0]), 8))
        self.assertEqual((flow["payload_sent"], flow["payload_received"], flow["packets_sent"], flow["packets_received"]), (4, 9, 4, 3))
        self.assertEqual((flow["handshake_seconds"], flow["duration_seconds"], result["counts"]["not_ip"]), (0.02, 0.06, 1))

    def test_what_was_sent_again_and_what_is_missing(self) -> None:
        base = 0xFFFFFFFA  # sequence numbers wrap within the flow
        parts = [segment(True, SYN, base - 1)] + [segment(True, PSH | ACK, base + i * 10, b"0123456789") for i in (0, 1, 1, 2, 4, 5)]
        (flow,) = self.flows(parts)["flows"]
        self.assertEqual((flow["retransmitted"], flow["missing_bytes"], flow["payload_sent"]), (1, 10, 60))

    def test_when_a_flow_is_over(self) -> None:
        again = connection(T0, 40000, 80) + connection(T0 + SECOND, 40000, 80)
        udp = traffic.ether(traffic.v4(A, B, 17, traffic.udp(5000, 6000, b"x")))
        frames = again + [(T0 + 2 * SECOND, udp), (T0 + 500 * SECOND, udp), (T0 + 1200 * SECOND, udp)]
        for timeout, want in ((600, 4), (1000, 3), (0, 2), (100, 5)):
            self.assertEqual(self.run_on(traffic.pcap(frames), idle_timeout=timeout)["counts"]["flows"], want, timeout)
        many = self.run_on(traffic.pcap([(T0 + i, traffic.ether(traffic.v4(A, B, 17, traffic.udp(i, 53)))) for i in range(50)]), max_open_flows=10)
        self.assertEqual(many["counts"]["flows"], 50)
        self.assertIn("40 flows were closed early", many["notes"][0])

    def found(self, frames: Frames, **payload: Any) -> Dict[str, Dict[str, Any]]:
        """The findings by kind."""
        return {one["kind"]: one for one in self.run_on(traffic.pcap(sorted(frames)), **payload)["findings"]}

    def test_beacons(self) -> None:
        rng = random.Random(1)
        regular = [f for i in range(12) for f in connection(T0 + i * 300 * SECOND + rng.randrange(-5, 5) * SECOND, 40000 + i, 443)]
        one = self.found(regular)["beacon"]
        self.assertEqual((one["source"], one["destination"], one["port"], one["weight"]), ("10.0.0.1", "198.51.100.2", 443, 12))
        self.assertAlmostEqual(one["interval_seconds"], 300, delta=10)
        self.assertEqual(len(one["frames"]), 5)
        person = [f for i in range(40) for f in connection(T0 + rng.randrange(7200) * SECOND, 40000 + i, 443)]
        self.assertNotIn("beacon", self.found(person))
        self.assertNotIn("beacon", self.found(regular, beacon_connections=13))

    def test_scans(self) -> None:
        ports = [(T0 + i * 1000, segment(True, SYN, 1, b"", 50000, i)) for i in range(1, 26)]
        one = self.found(ports)["vertical_scan"]
        self.assertEqual((one["weight"], one["port"], one["frames"]), (25, None, [1, 2, 3, 4, 5]))
        hosts = [(T0 + i, traffic.ether(traffic.v4(A, bytes([10, 9, 9, i]), 6, traffic.tcp(50000, 445, SYN)))) for i in range(30)]
        one = self.found(hosts)["horizontal_scan"]
        self.assertEqual((one["weight"], one["port"], one["destination"]), (30, 445, None))
        busy = [f for i in range(60) for f in connection(T0 + i * i * SECOND, 40000 + i, 1000 + i)]
        self.assertFalse(set(self.found(busy)) & {"vertical_scan", "horizontal_scan"})

    def test_uploads_long_connections_and_logins(self) -> None:
        big = [(T0 + i * SECOND, segment(True, ACK, i * 1000, bytes(1000), 40000, 443)) for i in range(100)]
        one = self.found(big, upload_bytes=90000, long_seconds=60)
        self.assertEqual((one["upload"]["weight"], one["long_connection"]["weight"]), (100000, 99))
        login = connection(T0, 40000, 80, b"GET / HTTP/1.1\r\nHost: a.example\r\nAuthorization: Basic eDp5\r\n\r\n")
        self.assertIn("cleartext_login", self.found(login))
        self.assertEqual(self.found(connection(T0, 40000, 80, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")), {})

    def test_tunnels_through_dns(self) -> None:
        rng = random.Random(2)
        ask = [(T0 + i * SECOND // 7, traffic.ether(traffic.v4(A, B, 17, traffic.udp(20000 + i, 53, traffic.dns("%032x.t.example" % rng.getrandbits(128)))))) for i in range(150)]
        self.assertEqual(self.found(ask)["dns_tunnel"]["weight"], 150)
        usual = [(T0 + i * SECOND, traffic.ether(traffic.v4(A, B, 17, traffic.udp(20000 + i, 53, traffic.dns("www%d.shop.example" % (i % 9)))))) for i in range(150)]
        self.assertNotIn("dns_tunnel", self.found(usual))

    def test_services_are_known_by_their_bytes(self) -> None:
        name = b"www.example.org"
        extension = b"\0\0" + (len(name) + 5).to_bytes(2, "big") + (len(name) + 3).to_bytes(2, "big") + b"\0" + len(name).to_bytes(2, "big") + name
        hello = b"\x16\x03\x01\0\xc0\x01\0\0\xbc\x03\x03" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0" + len(extension).to_bytes(2, "big") + extension
        for payload, want in (
            (hello, ("tls", "www.example.org")), (hello[:60], ("tls", None)), (b"\x16\x03\x01\0\x01\x02", ("tls", None)),
            (b"GET /a HTTP/1.1\r\nHost: h.example\r\n\r\n", ("http", "h.example")), (b"SSH-2.0-OpenSSH_9.6\r\n", ("ssh", "SSH-2.0-OpenSSH_9.6")),
            (b"\0\0\0\x54\xfeSMB@", ("smb", None)), (b"\0\0\0\x54\xffSMBr", ("smb", "version 1")), (b"\3\0\0\x2f\x2a\xe0\0\0\0\0\0Cookie: mstshash=eve\r\n", ("rdp", "eve")),
            (b"EHLO mail.example\r\n", ("smtp", "mail.example")), (b"USER eve\r\n", ("ftp", None)), (b"nothing known", (None, None)), (b"", (None, None)),
        ):  # fmt: skip
            self.assertEqual(service.of(payload, 6, (40000, 9)), want)
        for cut in range(len(hello)):
            self.assertEqual(service.of(hello[:cut], 6, (1, 2))[0], "tls" if cut > 5 else None)
        self.assertEqual(service.of(traffic.dns("a.example"), 17, (4000, 53)), ("dns", "a.example"))

    def test_a_series_widens_and_loses_nothing(self) -> None:
        rng = random.Random(3)
        series, total = Series("n", "bytes", most=50), 0
        for _ in range(2000):
            size = rng.randrange(100)
            series.add(rng.randrange(1_700_000_000, 1_700_500_000), 1, size)
            total += size
        shown = series.shown()
        self.assertLessEqual(len(shown["points"]), 51)
        self.assertEqual((sum(p["n"] for p in shown["points"]), sum(p["bytes"] for p in shown["points"])), (2000, total))

    def test_what_is_no_capture_and_what_breaks_off(self) -> None:
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file("a log\n")})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such.pcap"})
        whole = traffic.pcap(connection(T0, 1, 2))
        result = self.run_on(whole[:-1])
        self.assertEqual((result["truncated"], result["counts"]["packets"]), (True, 6))
        self.assertIn("TRUNCATED", self.tool.summarize_for_llm(ToolResult(ok=True, result=result)))

    def test_any_damage_is_an_answer(self) -> None:
        rng = random.Random(5)
        for form in (traffic.pcap(traffic.mixed(4, 60)), traffic.pcapng(traffic.mixed(4, 60))):
            for _ in range(60):
                data = bytearray(form)
                for _ in range(rng.randrange(1, 40)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                result = self.tool.execute({"file_path": self.file(bytes(data))}, self.context())
                self.assertTrue(result.ok or result.error_code == "ARTIFACT_UNREADABLE", result.message)

    def test_all_flows_become_an_artifact(self) -> None:
        frames = [f for i in range(30) for f in connection(T0 + i * SECOND, 40000 + i, 80)]
        self.artifact(traffic.pcap(frames), "pcap", "many.pcap")
        result = self.tool.execute({"limit": "5"}, self.context())
        assert result.result is not None
        self.assertEqual((len(result.result["flows"]), result.result["table_rows"], len(self.registered[0]["lines"])), (5, 30, 30))
        self.assertEqual(self.registered[0]["lines"][0]["source_port"], 40000)

    @unittest.skipUnless(os.path.exists(PCAPSUM), "pcapsum is not built (make build), the second implementation that flows are compared with")
    def test_beside_a_second_implementation(self) -> None:
        for seed in range(4):
            path = self.file(traffic.pcap(f for f in traffic.mixed(seed, 4000) if len(f[1]) >= 40), "mixed.pcap")
            result = self.tool.execute({"file_path": path, "idle_timeout": 0, "limit": 1}, self.context())
            assert result.ok and result.result is not None
            got = sorted(_facts(flow) for flow in self.registered[-1]["lines"])
            report = json.loads(subprocess.run([PCAPSUM, "-limit", "500", "-table", path + ".table", "--", path], capture_output=True, check=True).stdout)
            with open(path + ".table", encoding="utf-8") as file:
                want = sorted(_facts(json.loads(line)) for line in file)
            self.assertEqual(report["packets"], result.result["counts"]["packets"])
            self.assertEqual(len(got), len(want))
            self.assertEqual(got, want)

    def test_a_large_capture_in_little_memory_with_progress(self) -> None:
        path = os.path.join(self.dir, "large.pcap")
        with open(path, "wb") as file:
            frames = traffic.write(file, int(os.environ.get("MORTISE_TOOL_MB", "24")))
            rng, flood = random.Random(9), bytearray()  # and a flood of ends that are all different
            for i in range(150_000):
                data = traffic.ether(traffic.v4(rng.randbytes(4), rng.randbytes(4), 6, traffic.tcp(i & 0xFFFF, rng.randrange(65536), SYN)))
                flood += traffic.pcap([(T0 + i * 1000, data)])[24:]
            file.write(flood)
        script = (
            "import json, resource, sys, tool\n"
            "class Context: artifacts = []; session_id = ''; limits = {}; told = 0; register_artifact = None\n"
            "def progress(message, done, total, unit): Context.told += 1; Context.last = (done, total)\n"
            "context = Context(); context.progress = progress\n"
            "r = tool.PcapFlowAnalyzer().execute({'file_path': sys.argv[1]}, context)\n"
            "print(json.dumps([r.result['counts'], context.told, context.last, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))"
        )
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([HERE, *sys.path]))
        run = subprocess.run([sys.executable, "-B", "-c", script, path], capture_output=True, text=True, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        counts, told, last, kilobytes = json.loads(run.stdout)
        self.assertEqual(counts["packets"], frames + 150_000)
        self.assertGreater(told, os.path.getsize(path) >> 21)
        self.assertEqual(last[0], last[1])
        self.assertLess(kilobytes, 256 << 10)
        print("\n%d MB, %d packets, %d flows: %d MB of memory" % (os.path.getsize(path) >> 20, counts["packets"], counts["flows"], kilobytes >> 10), file=sys.stderr)


def _facts(flow: Dict[str, Any]) -> Tuple[Any, ...]:
    """What both implementations say of a flow, whichever end they take for its origin."""
    ends = sorted([(flow["source"], flow["source_port"] or 0), (flow["destination"], flow["destination_port"] or 0)])
    return (str(ends), flow["protocol"], flow["packets"], flow["bytes"])


if __name__ == "__main__":
    unittest.main()
