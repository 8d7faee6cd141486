"""What is found in captures of all kinds, beside a second search that shares no code with the first."""

from __future__ import annotations

import gzip
import ipaddress
import json
import os
import random
import struct
import subprocess
import sys
import unittest
from typing import Any, Dict, List, Set, Tuple

from framework.plugins.protocol import ToolResult

import traffic
from support import HERE, ToolCase
from tool import PcapIpSearch

A, B, C = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]), bytes([192, 0, 2, 9])
T0 = traffic.BEGIN


class Search(ToolCase):
    tool = PcapIpSearch()

    def search(self, frames: List[bytes], link: int = 1, **payload: Any) -> Dict[str, Any]:
        """The result for frames a millisecond apart."""
        return self.run_on(traffic.pcap(((T0 + i * 1_000_000, data) for i, data in enumerate(frames)), link), **payload)

    def test_a_match_is_cited_by_frame_offset_and_time(self) -> None:
        noise = traffic.ether(traffic.v4(A, B, 17, traffic.udp(1, 2)))
        result = self.search([noise, noise, traffic.ether(traffic.v4(A, C, 6, traffic.tcp(4000, 22, 2)))], addresses=["192.0.2.9"])
        (match,) = result["matches"]
        self.assertEqual((match["frame"], match["offset"], match["time"]), (3, 24 + 2 * (16 + len(noise)), "2026-03-05T08:40:00.002Z"))
        self.assertEqual((match["source"], match["destination"], match["destination_port"], match["flags"], match["roles"]), ("10.0.0.1", "192.0.2.9", 22, ["SYN"], ["destination"]))
        with open(os.path.join(self.dir, "sample.log"), "rb") as file:  # the offset is where the record is
            file.seek(match["offset"])
            self.assertEqual(struct.unpack("<IIII", file.read(16))[2], 54)
        self.assertEqual(result["series"]["points"], [{"time": "2026-03-05T08:40:00Z", "frames": 1, "bytes": 54}])

    def test_where_an_address_may_stand(self) -> None:
        inner = traffic.v4(C, B, 17, traffic.udp(7, 8))
        for role, depth, frame in (
            ("source", 0, traffic.ether(traffic.v4(C, A, 17, traffic.udp(1, 2)))),
            ("destination", 0, traffic.ether(traffic.v4(A, C, 17, traffic.udp(1, 2)), vlan=9)),
            ("source", 1, traffic.ether(traffic.v4(A, B, 4, inner))),
            ("source", 1, traffic.ether(traffic.v4(A, B, 47, b"\x20\0\x08\0" + bytes(4) + inner))),
            ("arp_sender", 0, traffic.arp(2, C, A)),
            ("arp_target", 0, traffic.arp(1, A, C)),
            ("dns_answer", 0, traffic.ether(traffic.v4(A, B, 17, traffic.udp(53, 4000, traffic.dns("www.example.org", A, C))))),
            ("icmp_quote", 0, traffic.ether(traffic.v4(A, B, 1, b"\3\1" + bytes(6) + inner))),
        ):
            (match,) = self.search([frame], addresses=["192.0.2.9"])["matches"]
            self.assertEqual((match["roles"], match["tunnel_depth"]), ([role], depth))
        self.assertEqual(self.search([traffic.ether(traffic.v4(A, B, 17, traffic.udp(53, 4000, traffic.dns("a.example", C))))], addresses="192.0.2.9")["matches"][0]["detail"],
                         "a.example is 192.0.2.9")  # fmt: skip

    def test_the_other_links(self) -> None:
        packet = traffic.v4(A, C, 17, traffic.udp(1, 2))
        for link, frame in ((101, packet), (228, packet), (0, b"\2\0\0\0" + packet), (113, bytes(14) + b"\x08\0" + packet), (276, b"\x08\0" + bytes(18) + packet)):
            self.assertEqual(self.search([frame], link, addresses=["192.0.2.9"])["counts"]["matched"], 1, link)

    def test_filters(self) -> None:
        frames = [traffic.ether(traffic.v4(A, C, 17, traffic.udp(4000, 53))), traffic.ether(traffic.v4(C, A, 17, traffic.udp(53, 4000))), traffic.ether(traffic.v4(C, A, 6, traffic.tcp(53, 1, 2)))]
        for payload, want in (
            ({}, [1, 2, 3]), ({"direction": "source"}, [2, 3]), ({"direction": "destination"}, [1]), ({"ports": "4000"}, [1, 2]), ({"protocols": ["tcp"]}, [3]),
            ({"start": "2026-03-05T08:40:00.001Z"}, [2, 3]), ({"end": "2026-03-05T09:40:00.001+01:00"}, [1, 2]), ({"protocols": "icmp"}, []),
        ):  # fmt: skip
            if "ports" in payload:
                payload = {"ports": [4000]}
            self.assertEqual([m["frame"] for m in self.search(frames, addresses=["192.0.2.0/24"], **payload)["matches"]], want, payload)

    def test_all_that_is_found_is_kept(self) -> None:
        frames = [traffic.ether(traffic.v4(A, C if i % 2 else B, 17, traffic.udp(i, 53))) for i in range(100)]
        ref = self.artifact(traffic.pcap((T0 + i, data) for i, data in enumerate(frames)), "pcap", "many.pcap")
        kept: List[Tuple[str, bytes]] = []
        context = self.context()

        def register(artifact_type: str, file_path: str, source_tool: str, metadata: Dict[str, Any]) -> Any:
            with open(file_path, "rb") as file:
                kept.append((artifact_type, file.read()))
            return ref

        context.register_artifact = register
        result = self.tool.execute({"addresses": ["192.0.2.9"], "limit": "5", "write_capture": "true"}, context)
        assert result.result is not None
        self.assertEqual((len(result.result["matches"]), result.result["table_rows"], result.result["capture_packets"]), (5, 50, 50))
        (table, rows), (kind, capture) = kept
        self.assertEqual((table, rows.count(b"\n"), kind), ("json_events", 50, "pcap"))
        self.assertEqual(capture, traffic.pcap((T0 + i, data) for i, data in enumerate(frames) if i % 2).replace(b"\xff\xff\0\0\1\0\0\0", b"\0\0\4\0\1\0\0\0", 1))
        self.assertEqual(self.run_on(capture, addresses=["192.0.2.9"], write_table=False)["counts"]["matched"], 50)  # and can be searched again

    def test_indicators_of_a_report(self) -> None:
        self.artifact(traffic.pcap([(T0, traffic.ether(traffic.v4(A, C, 17, traffic.udp(1, 2))))]), "pcap", "one.pcap")
        lines = '{"kind":"indicator","type":"ipv4","value":"192.0.2.9"}\n{"kind":"filtered","type":"ipv4","value":"10.0.0.1"}\n{"type":"domain","value":"x.example"}\n# no\n198.51.100.0/24\n'
        listed = self.artifact(lines, "json_events", "iocs.jsonl")
        for name in (listed.artifact_id, listed.file_path):
            result = self.tool.execute({"indicators": name}, self.context())
            assert result.result is not None
            self.assertEqual([t["target"] for t in result.result["targets"]], ["192.0.2.9"])
            self.assertEqual(result.result["not_found"], ["198.51.100.0/24"])
        self.refused("ARTIFACT_UNREADABLE", {"indicators": self.artifact("nothing", "text", "none.txt").artifact_id})
        self.refused("ARTIFACT_NOT_FOUND", {"indicators": "art_99999999"})

    def test_what_cannot_be_searched_for(self) -> None:
        for payload in ({}, {"addresses": []}, {"addresses": ["10.0.0.300"]}, {"addresses": ["x"]}, {"addresses": ["10.0.0.1"], "start": "yesterday, noon"}, {"addresses": ["::1"], "ports": [70000]}):
            self.assertFalse(self.tool.validate_inputs(payload).ok, payload)
        self.refused("INPUT_VALIDATION_FAILED", {"file_path": self.file(traffic.pcap([]))})
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file("a log\n"), "addresses": ["::1"]})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such.pcap", "addresses": ["::1"]})

    def test_a_capture_that_breaks_off(self) -> None:
        whole = traffic.pcap((T0 + i, traffic.ether(traffic.v4(A, C, 17, traffic.udp(1, 2)))) for i in range(10))
        for cut, at in ((1, 24 + 9 * 58), (43, 24 + 9 * 58)):
            result = self.run_on(whole[:-cut], addresses=["192.0.2.9"])
            self.assertEqual((result["truncated"], result["truncated_at"], result["counts"]["matched"]), (True, at, 9))
        result = self.run_on(gzip.compress(whole)[:-9], addresses=["192.0.2.9"])
        self.assertTrue(result["truncated"])
        self.assertIn("TRUNCATED", self.tool.summarize_for_llm(ToolResult(ok=True, result=result)))
        damaged = whole[: 24 + 8] + b"\xff\xff\xff\x7f" + whole[24 + 12 :]
        self.assertEqual(self.run_on(damaged, addresses=["::1"])["truncated_at"], 24)

    def test_forms_of_captures_agree(self) -> None:
        frames = traffic.mixed(3, 400)
        want = self.run_on(traffic.pcap(frames), addresses=["10.0.0.0/24"], limit=500)
        for form in (traffic.pcap(frames, order=">"), traffic.pcapng(frames), traffic.pcapng(frames, order=">"), gzip.compress(traffic.pcap(frames))):
            got = self.run_on(form, addresses=["10.0.0.0/24"], limit=500)
            for match in got["matches"] + want["matches"]:
                match.pop("offset", None)
            self.assertEqual((got["matches"], got["counts"]), (want["matches"], want["counts"]))

    def test_any_damage_is_an_answer(self) -> None:
        rng = random.Random(5)
        for form in (traffic.pcap(traffic.mixed(4, 60)), traffic.pcapng(traffic.mixed(4, 60))):
            for _ in range(60):
                data = bytearray(form)
                for _ in range(rng.randrange(1, 40)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                result = self.tool.execute({"file_path": self.file(bytes(data)), "addresses": ["10.0.0.0/8", "2001:db8::/32"]}, self.context())
                self.assertTrue(result.ok or result.error_code == "ARTIFACT_UNREADABLE", result.message)

    def test_beside_a_second_search(self) -> None:
        for seed in range(4):
            data = traffic.pcap(traffic.mixed(seed, 3000))
            texts = ["10.0.0.0/25", "10.0.3.77", "2001:db8::5", "2001:db8::/123", "203.0.113.1"]
            got = self.run_on(data, addresses=texts, limit=500, max_rows=1)
            want = second(data, texts)
            self.assertEqual({t["target"]: t["frames"] for t in got["targets"]}, {name: len(frames) for name, frames in want.items() if frames})
            self.assertEqual(got["counts"]["matched"], len(set().union(*want.values())))
            self.assertEqual([m["frame"] for m in got["matches"]], sorted(set().union(*want.values()))[:500])

    def test_a_large_capture_in_little_memory_with_progress(self) -> None:
        path = os.path.join(self.dir, "large.pcap")
        with open(path, "wb") as file:
            frames = traffic.write(file, int(os.environ.get("MORTISE_TOOL_MB", "24")))
        script = (
            "import json, resource, sys, tool\n"
            "class Context: artifacts = []; session_id = ''; limits = {}; told = 0; register_artifact = None\n"
            "def progress(message, done, total, unit): Context.told += 1; Context.last = (done, total)\n"
            "context = Context(); context.progress = progress\n"
            "r = tool.PcapIpSearch().execute({'file_path': sys.argv[1], 'addresses': ['10.0.0.0/9', '2001:db8::/64']}, context)\n"
            "print(json.dumps([r.result['counts'], context.told, context.last, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))"
        )
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([HERE, *sys.path]))
        run = subprocess.run([sys.executable, "-B", "-c", script, path], capture_output=True, text=True, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        counts, told, last, kilobytes = json.loads(run.stdout)
        self.assertEqual(counts["packets"], frames)
        self.assertGreater(told, os.path.getsize(path) >> 21)
        self.assertEqual(last[0], last[1])
        self.assertLess(kilobytes, 256 << 10)
        print("\n%d MB, %d packets: %d MB of memory" % (os.path.getsize(path) >> 20, frames, kilobytes >> 10), file=sys.stderr)


def second(data: bytes, texts: List[str]) -> Dict[str, Set[int]]:
    """Frame numbers by address, found the plain way: every place of an address is tried against every network."""
    nets = [(text, ipaddress.ip_network(text)) for text in texts]
    out: Dict[str, Set[int]] = {text: set() for text in texts}
    at = number = 0
    at = 24
    while at < len(data):
        (size,) = struct.unpack("<I", data[at + 8 : at + 12])
        frame, at, number = data[at + 16 : at + 16 + size], at + 16 + size, number + 1
        for packed in places(frame):
            address = ipaddress.ip_address(packed)
            for text, net in nets:
                if address.version == net.version and address in net:
                    out[text].add(number)
    return out


def places(frame: bytes) -> List[bytes]:
    """The addresses of one Ethernet frame; none where a header is not whole."""
    kind, rest = frame[12:14], frame[14:]
    if kind == b"\x81\x00":
        kind, rest = rest[2:4], rest[4:]
    if kind == b"\x08\x06":
        return [rest[14:18], rest[24:28]] if len(rest) >= 28 else []
    found: List[bytes] = []
    while kind in (b"\x08\x00", b"\x86\xdd"):
        if kind == b"\x08\x00":
            head, body, protocol = rest[:20], rest[20:], rest[9] if len(rest) > 9 else -1
            pair = [head[12:16], head[16:20]]
            whole, later = len(head) == 20, int.from_bytes(rest[6:8], "big") & 0x1FFF
        else:
            head, body, protocol, later = rest[:40], rest[40:], rest[6] if len(rest) > 6 else -1, 0
            pair, whole = [head[8:24], head[24:40]], len(head) == 40
            if protocol == 0 and whole:
                if len(body) < 2:
                    return []
                protocol, body = body[0], body[8 + body[1] * 8 :]
        if not whole:
            return []
        needed = {6: 14, 17: 4}.get(protocol, 0)
        if not later and len(body) < needed:
            return []
        found += pair
        kind = b""
        if later:
            break
        if protocol == 4:
            kind, rest = b"\x08\x00", body
        elif protocol == 1 and len(body) >= 28:
            found += [body[20:24], body[24:28]]
        elif protocol == 17 and body[:2] == b"\x00\x35":
            message = body[8:]
            end = message.index(b"\0", 12) + 5 if b"\0" in message[12:] else len(message)
            while end + 12 <= len(message):  # names are pointers in what traffic writes
                size = int.from_bytes(message[end + 10 : end + 12], "big")
                if end + 12 + size <= len(message):
                    found.append(message[end + 12 : end + 12 + size])
                end += 12 + size
    return found


if __name__ == "__main__":
    unittest.main()
