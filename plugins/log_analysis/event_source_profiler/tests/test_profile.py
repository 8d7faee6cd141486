"""Logs of every format, and what the profiler says of them."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import unittest

from support import HERE, ToolCase
from tool import EventSourceProfiler

SYSLOG = "Mar  5 09:14:02 gw1 sshd[811]: Accepted publickey for alice from 192.0.2.10 port 50122 ssh2\n"


class Formats(ToolCase):
    tool = EventSourceProfiler()

    def expect(self, text: str, name: str, **more: object) -> dict:
        result = self.run_on(text)
        self.assertEqual(result["format"]["name"], name, result["formats"])
        self.assertEqual(result["format"]["share"], 1.0, result["formats"])
        for key, value in more.items():
            self.assertEqual({s["name"]: s["records"] for s in result[key]}, value)
        return result

    def test_syslog_rfc3164(self) -> None:
        self.expect(SYSLOG + "<13>Mar  5 09:14:03 gw1 cron: started\n", "syslog_rfc3164", hosts={"gw1": 2}, sources={"sshd": 1, "cron": 1}, severities={"notice": 1})

    def test_syslog_rfc5424(self) -> None:
        line = '<165>1 2026-03-05T22:14:15.003Z host1.example.com evntslog - ID47 [x@32473 iut="3" eventSource="App"] an event\n'
        result = self.expect(line * 2, "syslog_rfc5424", hosts={"host1.example.com": 2}, severities={"notice": 2})
        self.assertEqual(result["time"]["zone"], "given")
        self.assertIn("iut", [f["name"] for f in result["fields"]])

    def test_syslog_with_iso_times(self) -> None:
        self.expect("2026-03-05T09:14:02.123456+01:00 gw1 sshd[811]: closed\n" * 2, "syslog_iso", hosts={"gw1": 2}, sources={"sshd": 2})

    def test_json_lines(self) -> None:
        result = self.expect('{"ts":"2026-03-05T09:00:00Z","level":"warn","host":"a","ctx":{"ip":"192.0.2.1","n":4}}\n' * 3, "json_lines", hosts={"a": 3}, severities={"warning": 3})
        fields = {f["name"]: f for f in result["fields"]}
        self.assertEqual(fields["ctx.ip"]["shapes"], [{"shape": "ipv4", "count": 3}])
        self.assertEqual((fields["ctx.n"]["min"], fields["ctx.n"]["max"]), (4, 4))

    def test_cef_behind_a_syslog_header(self) -> None:
        line = "Mar  5 09:14:02 fw1 CEF:0|Acme|Wall|1.0|100|Port \\| scan|7|src=192.0.2.1 dst=198.51.100.1 msg=two words here\n"
        result = self.expect(line, "cef", sources={"Acme Wall": 1}, severities={"error": 1})
        self.assertEqual(next(f for f in result["fields"] if f["name"] == "msg")["examples"], ["two words here"])

    def test_leef_1_and_2(self) -> None:
        result = self.expect("LEEF:1.0|Acme|Box|2.1|login|src=192.0.2.1\tusrName=bob\nLEEF:2.0|Acme|Box|2.1|login|^|src=192.0.2.2^usrName=eve\n", "leef")
        self.assertEqual(next(f for f in result["fields"] if f["name"] == "usrName")["records"], 2)

    def test_iis(self) -> None:
        log = "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem sc-status\n2026-03-05 09:00:00 192.0.2.5 GET /a 200\n2026-03-05 09:00:01 192.0.2.5 GET /b 404\n"
        result = self.expect(log, "w3c_extended", hosts={"192.0.2.5": 2})
        self.assertEqual(result["totals"]["comment_lines"], 2)

    def test_web_access_logs(self) -> None:
        self.expect('192.0.2.1 - - [05/Mar/2026:09:00:00 +0000] "GET /x?y=1 HTTP/1.1" 200 512 "-" "curl/8.0"\n', "access_combined")
        self.expect('192.0.2.1 - bob [05/Mar/2026:09:00:00 +0000] "GET /x HTTP/1.1" 200 512\n', "access_common")

    def test_web_error_logs(self) -> None:
        self.expect("[Thu Mar 05 09:00:00.123456 2026] [core:error] [pid 9] AH00124: limit\n", "apache_error", severities={"error": 1})
        self.expect("2026/03/05 09:00:00 [warn] 12#12: *3 upstream slow\n", "nginx_error", severities={"warning": 1})

    def test_windows_events_as_xml(self) -> None:
        event = (
            "<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider Name='Sec' /><EventID>4625</EventID><Level>2</Level>\n"
            "<TimeCreated SystemTime='2026-03-05T09:00:00.5Z' /><Computer>ws1</Computer></System>\n<EventData><Data Name='User'>a&amp;b</Data></EventData></Event>\n"
        )
        result = self.expect("<?xml version='1.0'?><Events>" + event * 2 + "</Events>", "windows_event_xml", hosts={"ws1": 2}, severities={"error": 2})
        self.assertEqual(next(f for f in result["fields"] if f["name"] == "EventData.User")["examples"], ["a&b"])

    def test_windows_events_as_csv(self) -> None:
        log = 'Level,Date and Time,Source,Event ID,Task Category\r\nInformation,3/5/2026 9:00:00 AM,Sec,4624,"Logon\r\nsecond line"\r\nError,3/5/2026 9:00:01 PM,Sec,7,None\r\n'
        result = self.expect(log, "windows_event_csv", severities={"error": 1, "info": 1})
        self.assertEqual(result["multi_line"], {"records": 1, "continuation_lines": 1, "longest": 2})
        self.assertEqual(result["time"]["span_seconds"], 43201)

    def test_csv(self) -> None:
        result = self.expect("time;user;port\n2026-03-05 09:00:00;bob;22\n2026-03-05 09:00:09;eve;23\n", "csv")
        self.assertEqual([f["name"] for f in result["fields"]], ["port", "time", "user"])

    def test_key_value(self) -> None:
        self.expect('date=2026-03-05 time=09:00:00 devname="fw1" srcip=192.0.2.1 action="deny"\n', "key_value", hosts={"fw1": 1})

    def test_dpkg_audit_application_and_plain_text(self) -> None:
        self.expect("2026-03-05 09:00:00 install libc6:amd64 <none> 2.36\n", "dpkg")
        self.expect('type=USER_LOGIN msg=audit(1772701200.123:42): pid=1 uid=0 res="failed"\n', "audit")
        self.expect("2026-03-05 09:00:00,123 ERROR [main] com.example.App - no\n", "application", severities={"error": 1})
        self.expect("[2026-03-05 09:00:00] something happened\n", "timestamped_text")
        self.expect("no shape at all\nnone here either\n", "unknown")

    def test_json_documents(self) -> None:
        event = {"eventTime": "2026-03-05T09:00:00Z", "eventSource": "s3.example.com", "eventName": "GetObject", "responseElements": None}
        for document in (json.dumps({"Records": [event] * 3}), json.dumps([event] * 3, indent=2), json.dumps({"nextToken": "x", "Events": [event] * 3, "n": 1})):
            self.expect(document, "json_document", sources={"s3.example.com": 3})

    def test_a_mixed_log_names_all_formats(self) -> None:
        result = self.run_on(SYSLOG * 3 + '{"a":1}\n')
        self.assertEqual([(f["name"], f["records"], f["first_line"]) for f in result["formats"]], [("syslog_rfc3164", 3, 1), ("json_lines", 1, 4)])


class Facts(ToolCase):
    tool = EventSourceProfiler()

    def test_continued_lines_belong_to_their_record(self) -> None:
        log = "2026-03-05 09:00:00,1 ERROR x.Y - failed\njava.io.IOException: no\n\tat a.b(C.java:1)\n\tat a.c(C.java:2)\n2026-03-05 09:00:01,1 INFO x.Y - ok\n"
        result = self.run_on(log)
        self.assertEqual(result["totals"]["records"], 2)
        self.assertEqual(result["multi_line"], {"records": 1, "continuation_lines": 3, "longest": 4})

    def test_gaps_and_rate(self) -> None:
        lines = ["2026-03-05 %02d:%02d:00 tick" % (9 + m // 60, m % 60) for m in range(120)] + ["2026-03-05 18:00:00 tock"]
        result = self.run_on("\n".join(lines))
        self.assertEqual(result["gaps"], [{"from": "2026-03-05T10:59:00", "to": "2026-03-05T18:00:00", "seconds": 25260.0}])
        self.assertEqual(result["rate"]["buckets"], [{"start": "2026-03-05T09:00:00", "records": 60}, {"start": "2026-03-05T10:00:00", "records": 60}, {"start": "2026-03-05T18:00:00", "records": 1}])
        self.assertEqual(self.run_on("\n".join(lines), gap_seconds=30)["counts"]["gaps"], 120)

    def test_years(self) -> None:
        log = "Dec 31 23:59:59 h a: x\nJan  1 00:00:01 h a: y\n"
        result = self.run_on(log)
        self.assertEqual((result["time"]["first"], result["time"]["span_seconds"], result["time"]["year_known"]), ("12-31T23:59:59", 2.0, False))
        self.assertEqual(self.run_on(log, year=2025)["time"]["last"], "2026-01-01T00:00:01")

    def test_encodings(self) -> None:
        text = SYSLOG.replace("alice", "zoë") * 3
        for encoding, name in (("utf-8", "utf-8"), ("utf-8-sig", "utf-8"), ("utf-16", "utf-16-le"), ("utf-16-be", "utf-16-be"), ("latin-1", "latin-1")):
            result = self.run_on(text.encode(encoding))
            self.assertEqual((result["encoding"]["name"], result["totals"]["records"], result["format"]["name"]), (name, 3, "syslog_rfc3164"), encoding)
        mixed = self.run_on(text.encode() + text.encode("latin-1"))["encoding"]
        self.assertEqual((mixed["name"], mixed["latin1_lines"]), ("mixed", 3))

    def test_nul_bytes_crlf_and_gzip(self) -> None:
        result = self.run_on(b"\0" * 5000 + SYSLOG.replace("\n", "\r\n").encode() * 2)
        self.assertEqual((result["encoding"]["nul_bytes"], result["encoding"]["newline"], result["totals"]["records"]), (5000, "crlf", 2))
        packed = gzip.compress(SYSLOG.encode() * 5000)
        self.assertTrue(self.run_on(packed)["encoding"]["compressed"])
        self.assertFalse(self.run_on(packed[:-20])["totals"]["complete"])

    def test_secrets_are_not_shown(self) -> None:
        result = self.run_on('{"api_key":"hunter2","user":"bob"}\n')
        self.assertNotIn("hunter2", json.dumps(result["fields"]))

    def test_shapes(self) -> None:
        values = {
            "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "mac": "00:00:5e:00:53:01", "uuid": "123e4567-e89b-12d3-a456-426614174000", "md5": "d41d8cd98f00b204e9800998ecf8427e",
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "url": "https://example.com/a", "email": "a@example.com", "domain": "www.example.com",
            "path": "/etc/passwd", "timestamp": "2026-03-05T09:00:00Z", "integer": "-5", "decimal": "1.5", "boolean": "true", "empty": "", "identifier": "abc_def", "text": "two words",
            "version": "1.2.3-rc1", "sid": "S-1-5-21-1-2", "hex": "0x1f",
        }  # fmt: skip
        got = {f["name"]: f["shapes"][0]["shape"] for f in self.run_on(json.dumps(values))["fields"] if f["name"] in values}
        self.assertEqual(got, {name: name for name in values if name in got})
        self.assertGreaterEqual(len(got), 20)


class Requests(ToolCase):
    tool = EventSourceProfiler()

    def test_the_sessions_first_fitting_artifact(self) -> None:
        self.artifact("x", "pcap", "a.pcap")
        self.artifact("{}", "text", "b.txt")
        self.artifact(SYSLOG, "log_stream", "c.log")
        result = self.tool.execute({}, self.context())
        self.assertEqual(result.result["artifact"], {"artifact_id": "art_00000003", "artifact_type": "log_stream", "name": "c.log"})
        self.assertEqual(self.tool.execute({"file_path": "elsewhere/b.txt"}, self.context()).result["artifact"]["artifact_id"], "art_00000002")

    def test_what_is_not_there(self) -> None:
        self.refused("ARTIFACT_NOT_FOUND", {"artifact_id": "art_ffffffff"})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such/file"})
        self.refused("ARTIFACT_NOT_FOUND", {})

    def test_what_cannot_be_read(self) -> None:
        self.assertIn("EVTX", self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(b"ElfFile\0" + b"\0" * 200)}).message)
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.dir})
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(bytes(range(1, 9)) * 100)})
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file('[{"a": 1')})

    def test_an_empty_file_is_a_result_with_a_note(self) -> None:
        self.assertEqual(self.run_on("")["notes"], ["The file holds no records."])

    def test_long_lists_are_registered(self) -> None:
        text = "".join("Mar  5 09:14:02 h%03d app: x\n" % n for n in range(100))
        result = self.tool.execute({"file_path": self.file(text), "limit": 5}, self.context())
        self.assertEqual((len(result.result["hosts"]), result.result["counts"]["hosts"]), (5, 100))
        self.assertEqual(sum(1 for line in self.registered[0]["lines"] if line["kind"] == "host"), 100)
        self.assertEqual(result.output_artifacts[0]["artifact_type"], "json_events")

    def test_text_of_a_command_line_counts_as_numbers(self) -> None:
        self.assertTrue(self.tool.validate_inputs({"limit": "5", "year": "2026"}).ok)
        self.assertFalse(self.tool.validate_inputs({"limit": "five"}).ok)

    def test_random_input_never_breaks_it(self) -> None:
        rng = random.Random(7)
        parts = [SYSLOG.encode(), b"\xff\xfe", b"\0", b"{", b"[{", b"<Event ", b"#Fields: a b\n", b'"', b",,,\n", b"CEF:0|", b"\n", b"2026-99-99 99:99:99 x\n", "é".encode(), b"1e999\n"]
        for _ in range(300):
            data = b"".join(rng.choice(parts) for _ in range(rng.randrange(1, 30)))
            result = self.tool.execute({"file_path": self.file(data)}, self.context())
            self.assertIn(result.error_code, (None, "ARTIFACT_UNREADABLE"))
            json.dumps(result.result, allow_nan=False)


class Size(ToolCase):
    def test_many_lines_need_little_memory(self) -> None:
        rng = random.Random(3)
        path = os.path.join(self.dir, "large.log")
        with open(path, "w") as file:
            for n in range(100000):
                file.write("Mar  5 %02d:%02d:%02d h%d app[%d]: user %s%d from 198.51.100.%d took=%d\n" % (n // 3600 % 24, n // 60 % 60, n % 60, n, n, rng.choice("abc"), n, n % 256, n))
        code = (
            "import resource, sys; sys.path[:0] = [%r]; from tool import EventSourceProfiler; r = EventSourceProfiler().execute({'file_path': %r}, None); "
            "print(r.result['totals']['records'], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(r.result['notes']))" % (HERE, path)
        )
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        out = subprocess.run([sys.executable, "-B", "-c", code], env=env, capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(out[0], "100000")
        self.assertLess(int(out[1]), 120 << 10)
        self.assertGreater(int(out[2]), 0)  # the table of hosts is full, and a note says so


if __name__ == "__main__":
    unittest.main()
