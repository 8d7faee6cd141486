"""Logs of every make, and what they add up to."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import unittest

from support import HERE, ToolCase
from tool import FirewallLogAggregator


class Case(ToolCase):
    tool = FirewallLogAggregator()

    def rows(self, text: str) -> list:
        """The rows that are registered, as (action, protocol, source, port, destination, port)."""
        self.registered.clear()
        self.run_on(text)
        keys = ("action", "protocol", "source", "source_port", "destination", "destination_port")
        return [tuple(line.get(k) for k in keys) for line in self.registered[0]["lines"]]


class Makes(Case):
    def test_iptables_nftables_and_ufw(self) -> None:
        log = (
            "Mar  5 09:00:00 fw kernel: [1.2] DROP-INPUT: IN=eth0 OUT= MAC= SRC=198.51.100.7 DST=192.0.2.1 LEN=40 PROTO=TCP SPT=4000 DPT=23 SYN\n"
            "Mar  5 09:00:01 fw kernel: nft-accept IN= OUT=eth0 SRC=192.0.2.1 DST=203.0.113.9 LEN=76 PROTO=UDP SPT=123 DPT=123\n"
            "Mar  5 09:00:02 fw kernel: [UFW BLOCK] IN=eth0 OUT= SRC=2001:0db8:0000:0000:0000:0000:0000:0007 DST=2001:db8::1 LEN=80 PROTO=ICMPv6 TYPE=128\n"
            "Mar  5 09:00:03 fw kernel: [UFW AUDIT] IN=eth0 OUT= SRC=198.51.100.7 DST=192.0.2.1 LEN=99 PROTO=ICMP TYPE=3 [SRC=192.0.2.1 DST=198.51.100.7 PROTO=TCP SPT=1 DPT=2 ]\n"
        )
        self.assertEqual(
            self.rows(log),
            [
                ("deny", "tcp", "198.51.100.7", 4000, "192.0.2.1", 23),
                ("allow", "udp", "192.0.2.1", 123, "203.0.113.9", 123),
                ("deny", "icmpv6", "2001:0db8:0000:0000:0000:0000:0000:0007", None, "2001:db8::1", None),
                ("unknown", "icmp", "198.51.100.7", None, "192.0.2.1", None),
            ],
        )

    def test_cisco_asa(self) -> None:
        log = (
            'Mar 05 2026 09:00:00: %ASA-4-106023: Deny tcp src outside:198.51.100.7/4000 dst inside:192.0.2.1/23 by access-group "OUT_IN" [0x0, 0x0]\n'
            "Mar 05 2026 09:00:01: %ASA-6-302013: Built outbound TCP connection 77 for outside:203.0.113.9/443 (203.0.113.9/443) to inside:192.0.2.1/50000 (192.0.2.1/50000)\n"
            "Mar 05 2026 09:00:09: %ASA-6-302014: Teardown TCP connection 77 for outside:203.0.113.9/443 to inside:192.0.2.1/50000 duration 0:00:08 bytes 4711 TCP FINs\n"
            "Mar 05 2026 09:00:10: %ASA-6-106100: access-list IN permitted udp inside/192.0.2.1(5000) -> outside/203.0.113.53(53) hit-cnt 1 first hit [0x1, 0x0]\n"
            "Mar 05 2026 09:00:11: %ASA-2-106001: Inbound TCP connection denied from 198.51.100.7/4001 to 192.0.2.1/22 flags SYN  on interface outside\n"
            "Mar 05 2026 09:00:12: %ASA-5-111008: User 'admin' executed the 'show' command.\n"
        )
        result = self.run_on(log)
        self.assertEqual((result["totals"]["rows"], result["totals"]["skipped"], result["totals"]["bytes"], result["totals"]["unparsed"]), (4, 1, 4711, 0))
        self.assertEqual(
            self.rows(log),
            [
                ("deny", "tcp", "198.51.100.7", 4000, "192.0.2.1", 23),
                ("allow", "tcp", "192.0.2.1", 50000, "203.0.113.9", 443),
                ("allow", "udp", "192.0.2.1", 5000, "203.0.113.53", 53),
                ("deny", "tcp", "198.51.100.7", 4001, "192.0.2.1", 22),
            ],
        )
        self.assertEqual((result["top_talkers"][0]["destination"], result["top_talkers"][0]["bytes"]), ("203.0.113.9", 4711))

    def test_pf_and_pfsense(self) -> None:
        log = (
            "Mar  5 09:00:00 pf filterlog[123]: 5,,,1000000103,em0,match,block,in,4,0x0,,64,0,0,DF,6,tcp,60,198.51.100.7,192.0.2.1,4000,22,0,S,1,,64240,,mss\n"
            "Mar  5 09:00:01 pf filterlog[123]: 7,,,1000000104,em0,match,pass,out,6,0x00,0x0,255,udp,17,90,2001:db8::1,2001:db8::53,5000,53,70\n"
            "2026-03-05 09:00:02.000001 rule 5/0(match): block in on em0: 198.51.100.7.4001 > 192.0.2.1.80: Flags [S], seq 1, length 0\n"
        )
        self.assertEqual(
            self.rows(log),
            [
                ("deny", "tcp", "198.51.100.7", 4000, "192.0.2.1", 22),
                ("allow", "udp", "2001:db8::1", 5000, "2001:db8::53", 53),
                ("deny", "tcp", "198.51.100.7", 4001, "192.0.2.1", 80),
            ],
        )

    def test_windows_firewall(self) -> None:
        log = (
            "#Version: 1.5\r\n#Software: Microsoft Windows Firewall\r\n#Time Format: Local\r\n"
            "#Fields: date time action protocol src-ip dst-ip src-port dst-port size tcpflags tcpsyn tcpack tcpwin icmptype icmpcode info path\r\n\r\n"
            "2026-03-05 09:00:00 DROP TCP 198.51.100.7 192.0.2.1 4000 445 52 S 1 0 64240 - - - RECEIVE\r\n"
            "2026-03-05 09:00:01 ALLOW UDP 192.0.2.1 192.0.2.53 5000 53 0 - - - - - - - SEND\r\n"
        )
        self.assertEqual(self.rows(log), [("deny", "tcp", "198.51.100.7", 4000, "192.0.2.1", 445), ("allow", "udp", "192.0.2.1", 5000, "192.0.2.53", 53)])

    def test_vpc_flow_logs(self) -> None:
        row = "2 123456789010 eni-0a 198.51.100.7 192.0.2.1 4000 22 6 3 180 1772701200 1772701260 REJECT OK\n"
        result = self.run_on(row + "2 123456789010 eni-0a - - - - - - - 1772701200 1772701260 - NODATA\n")
        self.assertEqual((result["totals"]["rows"], result["totals"]["skipped"], result["totals"]["bytes"]), (1, 1, 180))
        self.assertEqual(result["time"]["first"], "2026-03-05T09:00:00Z")
        custom = "srcaddr dstaddr dstport protocol action start pkt-srcaddr\n198.51.100.7 192.0.2.1 22 6 ACCEPT 1772701200 -\n"
        self.assertEqual(self.rows(custom), [("allow", "tcp", "198.51.100.7", None, "192.0.2.1", 22)])

    def test_generic_csv_json_key_value_and_cef(self) -> None:
        want = [("deny", "tcp", "198.51.100.7", 4000, "192.0.2.1", 22)]
        event = {"@timestamp": "2026-03-05T09:00:00Z", "event": {"action": "firewall-rule-denied"}, "source": {"ip": "198.51.100.7", "port": 4000}, "destination": {"ip": "192.0.2.1", "port": 22}, "network": {"transport": "tcp"}}
        for log in (
            "Time,Action,Protocol,Src IP,src_ip,Src_Port,Dst_IP,Dst_Port\n2026-03-05 09:00:00,Blocked,TCP,x,198.51.100.7,4000,192.0.2.1,22\n",
            json.dumps(event) + "\n",
            json.dumps({"events": [event]}),
            'date=2026-03-05 time=09:00:00 devname="fw" srcip=198.51.100.7 srcport=4000 dstip=192.0.2.1 dstport=22 proto=6 action="deny" sentbyte=60\n',
            "CEF:0|Acme|Wall|1|1|Drop|5|rt=1772701200000 act=Drop proto=TCP src=198.51.100.7 spt=4000 dst=192.0.2.1 dpt=22\n",
        ):
            self.assertEqual(self.rows(log), want, log)


def line(second: int, action: str, source: str, destination: str, port: int, source_port: int = 40000) -> str:
    return "2026-03-05T%02d:%02d:%02dZ fw kernel: [UFW %s] IN=eth0 OUT= SRC=%s DST=%s LEN=60 PROTO=TCP SPT=%d DPT=%d\n" % (
        9 + second // 3600, second // 60 % 60, second % 60, action, source, destination, source_port, port,
    )  # fmt: skip


class Findings(Case):
    def test_a_port_scan_and_a_host_sweep(self) -> None:
        scan = "".join(line(n, "BLOCK", "198.51.100.7", "192.0.2.1", 1000 + n) for n in range(30))
        sweep = "".join(line(100 + n, "BLOCK", "198.51.100.8", "192.0.2.%d" % n, 445) for n in range(1, 31))
        client = "".join(line(200 + n, "ALLOW", "192.0.2.200", "203.0.113.%d" % n, 443) for n in range(1, 31))
        found = self.run_on(scan + sweep + client)["scanners"]
        self.assertEqual([(s["source"], s["kind"], s["ports"], s["hosts"]) for s in found], [("198.51.100.7", "ports", 30, 1), ("198.51.100.8", "hosts", 1, 30)])

    def test_answers_of_a_server_are_no_scan(self) -> None:
        log = "".join(line(n, "ALLOW", "192.0.2.1", "203.0.113.5", 40000 + n, 443) for n in range(50))
        self.assertEqual(self.run_on(log)["scanners"], [])

    def test_a_beacon_with_jitter_and_no_person(self) -> None:
        rng = random.Random(5)
        beacon = [line(60 * n + rng.randrange(-5, 6) + 10, "ALLOW", "192.0.2.20", "203.0.113.66", 443, 40000 + n) for n in range(40)]
        person, at = [], 0
        for n in range(40):
            at += rng.choice((2, 7, 31, 95, 160))
            person.append(line(at, "ALLOW", "192.0.2.21", "203.0.113.67", 443, 41000 + n))
        found = self.run_on("".join(sorted(beacon + person)))["beacons"]
        self.assertEqual([(b["source"], b["destination"], b["port"], b["connections"]) for b in found], [("192.0.2.20", "203.0.113.66", 443, 40)])
        self.assertAlmostEqual(found[0]["interval_seconds"], 60, delta=3)
        self.assertGreaterEqual(found[0]["regularity"], 0.8)

    def test_one_long_connection_is_no_beacon(self) -> None:
        log = "".join("2 1 eni-0 192.0.2.20 203.0.113.66 50000 443 6 3 180 %d %d ACCEPT OK\n" % (1772701200 + 60 * n, 1772701260 + 60 * n) for n in range(40))
        self.assertEqual(self.run_on(log)["beacons"], [])

    def test_denied_then_allowed_whatever_the_order_of_lines(self) -> None:
        lines = [line(1, "BLOCK", "198.51.100.7", "192.0.2.1", 22), line(90, "ALLOW", "198.51.100.7", "192.0.2.1", 3389), line(2, "ALLOW", "203.0.113.1", "192.0.2.1", 80), line(80, "BLOCK", "203.0.113.1", "192.0.2.1", 80)]
        for order in (lines, lines[::-1]):
            found = self.run_on("".join(order))["denied_then_allowed"]
            self.assertEqual([(d["source"], d["denied_ports"], d["allowed_port"], d["same_port"]) for d in found], [("198.51.100.7", [22], 3389, False)])

    def test_counts_by_action_time_and_port(self) -> None:
        log = line(0, "BLOCK", "198.51.100.7", "192.0.2.1", 22) + line(30, "ALLOW", "198.51.100.8", "192.0.2.1", 80) + line(3700, "ALLOW", "198.51.100.8", "192.0.2.1", 80)
        result = self.run_on(log)
        self.assertEqual(result["by_action"], [{"action": "allow", "rows": 2}, {"action": "deny", "rows": 1}, {"action": "unknown", "rows": 0}])
        self.assertEqual([(p["port"], p["rows"], p["deny"]) for p in result["by_port"]], [(80, 2, 0), (22, 1, 1)])
        self.assertEqual([(b["start"], b["rows"]) for b in result["by_time"]], [("2026-03-05T09:00:00Z", 2), ("2026-03-05T10:01:00Z", 1)])

    def test_the_answer_depends_on_the_input_alone(self) -> None:
        rng = random.Random(11)
        log = "".join(line(n, rng.choice(("BLOCK", "ALLOW")), "198.51.100.%d" % rng.randrange(30), "192.0.2.%d" % rng.randrange(30), rng.randrange(1, 99)) for n in range(3000))
        code = "import json, sys; sys.path[:0] = [%r]; from tool import FirewallLogAggregator as F; print(json.dumps(F().execute({'file_path': %r}, None).result))" % (HERE, self.file(log))
        answers = set()
        for seed in ("1", "2"):
            env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), PYTHONHASHSEED=seed)
            answers.add(subprocess.run([sys.executable, "-B", "-c", code], env=env, capture_output=True, text=True, check=True).stdout)
        self.assertEqual(len(answers), 1)


class Requests(Case):
    def test_errors(self) -> None:
        self.refused("ARTIFACT_NOT_FOUND", {"artifact_id": "art_ffffffff"})
        self.refused("ARTIFACT_NOT_FOUND", {})
        refused = self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file("nothing of a firewall\n" * 9)})
        self.assertEqual(refused.details["unparsed_lines"], [1, 2, 3, 4, 5])
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(b"\xd4\xc3\xb2\xa1" + b"\0" * 99)})
        self.assertEqual(os.listdir(os.path.join(self.dir, "artifacts")), [])

    def test_empty_log(self) -> None:
        self.assertEqual(self.run_on("")["notes"], ["The log holds no records."])

    def test_rows_are_registered_up_to_a_limit(self) -> None:
        log = "".join(line(n, "BLOCK", "198.51.100.7", "192.0.2.1", 22) for n in range(50))
        ref = self.artifact(log, "log_stream")
        result = self.tool.execute({"artifact_id": ref.artifact_id, "max_rows": 10}, self.context())
        self.assertEqual((len(self.registered[0]["lines"]), self.registered[0]["type"]), (10, "json_events"))
        self.assertEqual(self.registered[0]["metadata"], {"source_artifact": ref.artifact_id, "rows": 10, "complete": False})
        self.assertIn("The file of rows holds the first 10 of 50.", result.result["notes"])
        self.assertIsNone(self.tool.execute({"artifact_id": ref.artifact_id, "write_rows": False}, self.context()).output_artifacts)

    def test_lines_not_understood_are_counted_and_named(self) -> None:
        result = self.run_on(line(0, "BLOCK", "198.51.100.7", "192.0.2.1", 22) + "hello\n")
        self.assertEqual(result["totals"]["unparsed"], 1)
        self.assertIn("1 records were not understood, the first at 2.", result["notes"])

    def test_random_input_never_breaks_it(self) -> None:
        rng = random.Random(7)
        parts = [line(0, "BLOCK", "198.51.100.7", "192.0.2.1", 22).encode(), b"IN= SRC=x DST=y", b"%ASA-4-106023: Deny tcp src", b"filterlog: 1,,,", b"\xff", b"\0", b"{", b'{"src_ip":[1]}', b"\n", b"#Fields: \n", b"2 1 e 1 2 3 4\n", b",", b'"']
        for _ in range(300):
            data = b"".join(rng.choice(parts) for _ in range(rng.randrange(1, 30)))
            result = self.tool.execute({"file_path": self.file(data)}, self.context())
            self.assertIn(result.error_code, (None, "ARTIFACT_UNREADABLE"))
            json.dumps(result.result, allow_nan=False)


class Size(Case):
    def test_tables_are_bounded_and_say_so(self) -> None:
        from firewall_logs import aggregate
        from firewall_logs.row import Row

        total = aggregate.Aggregate()
        for n in range(60000):
            total.add(Row("x", "", "deny", "tcp", "198.51.%d.%d" % (n >> 8, n & 255), 1, "192.0.2.1", n, "", "", 0, 0), float(n * 61))
        self.assertEqual(len(total.sources), aggregate.MOST_SOURCES)
        self.assertLessEqual(len(total.buckets), aggregate.MOST_BUCKETS)
        self.assertEqual(total.notes(), ["The table of sources was full: 10000 values are not in it."])


if __name__ == "__main__":
    unittest.main()
