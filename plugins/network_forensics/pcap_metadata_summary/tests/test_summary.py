"""Captures of all kinds, and what the tool says of them."""

from __future__ import annotations

import json
import os
import struct
import unittest
from typing import List, Tuple
from unittest import mock

from framework.plugins.protocol import ToolResult

from pcap_summary import reader
from support import HERE, ToolCase
from tool import PcapMetadataSummary


def packet(source: int, port: int, size: int = 0) -> bytes:
    """A UDP packet without a link header."""
    udp = struct.pack(">HHHH", port, 9999, 8 + size, 0) + bytes(size)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0)
    return head + struct.pack(">I4s", 0x0A000000 + source, bytes([192, 0, 2, 1])) + udp


def capture(packets: List[Tuple[float, bytes]]) -> bytes:
    """A pcap file of raw IP packets."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for time, data in packets:
        out += struct.pack("<IIII", int(time), round(time % 1 * 1e6), len(data), len(data)) + data
    return out


def many(n: int) -> bytes:
    return capture([(1000 + i, packet(i, 4000, i % 100)) for i in range(n)])


class Summaries(ToolCase):
    tool = PcapMetadataSummary()

    def test_packets_bytes_and_times(self) -> None:
        result = self.run_on(capture([(1000.5, packet(1, 5000, 10)), (1002.25, packet(1, 5000)), (1001, packet(2, 5001))]))
        self.assertEqual((result["packets"], result["bytes"], result["counts"]["conversations"]), (3, 28 * 3 + 10, 2))
        self.assertEqual((result["time"]["first"], result["time"]["duration_seconds"], result["time"]["out_of_order"]), ("1970-01-01T00:16:40.5Z", 1.75, 1))
        first = result["conversations"][0]
        self.assertEqual((first["source"], first["source_port"], first["destination_port"], first["packets"]), ("10.0.0.1", 5000, 9999, 2))
        self.assertIsNone(result["table"])
        self.assertEqual(self.registered, [])

    def test_all_conversations_become_an_artifact(self) -> None:
        ref = self.artifact(many(100), "pcap", "many.pcap")
        result = self.tool.execute({"limit": "10"}, self.context())  # as a command line gives it
        self.assertTrue(result.ok, result.message)
        assert result.result is not None and result.output_artifacts is not None
        self.assertEqual((len(result.result["conversations"]), result.result["table"]["written"]), (10, 100))
        self.assertEqual(result.result["artifact"], {"artifact_id": ref.artifact_id, "artifact_type": "pcap", "name": "many.pcap"})
        (registered,) = self.registered
        self.assertEqual((registered["type"], registered["tool"], len(registered["lines"])), ("json_events", "pcap_metadata_summary", 100))
        self.assertEqual(registered["lines"][:10], result.result["conversations"])
        self.assertEqual([o["artifact_type"] for o in result.output_artifacts], ["json_events"])

    def test_nothing_is_left_behind(self) -> None:
        self.run_on(many(5))
        self.run_on(many(50), limit=10, write_table=False)
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file("no capture")})
        self.assertEqual(os.listdir(os.path.join(self.dir, "artifacts")), [])

    def test_conversations_beyond_the_limit(self) -> None:
        result = self.run_on(many(100), max_flows=7)
        self.assertEqual((result["counts"]["conversations"], result["counts"]["packets_of_unkept_conversations"]), (7, 93))
        self.assertIn("beyond the first 7", " ".join(result["notes"]))

    def test_a_capture_that_breaks_off(self) -> None:
        whole = many(10)
        result = self.run_on(whole[:-1])
        self.assertEqual((result["truncated"], result["packets"], result["truncated_at"]), (True, 9, len(whole) - 16 - 28 - 9))
        self.assertIn("TRUNCATED at byte", self.tool.summarize_for_llm(ToolResult(ok=True, result=result)))

    def test_what_is_no_capture(self) -> None:
        for content in (b"", b"Mar  5 09:14:02 gw1 sshd[811]: closed\n", many(1)[:20]):
            refused = self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(content)})
            self.assertIn("file_path", refused.details)

    def test_what_is_not_there(self) -> None:
        self.refused("ARTIFACT_NOT_FOUND", {"artifact_id": "art_00000099"})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such.pcap"})
        self.artifact("text", "text", "notes.txt")
        self.refused("ARTIFACT_NOT_FOUND", {})

    def test_a_path_that_looks_like_a_flag(self) -> None:
        path = self.file(many(3), "-limit")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)
        result = self.tool.execute({"file_path": "-limit"}, self.context())
        self.assertTrue(result.ok, result.message)
        assert result.result is not None
        self.assertEqual((result.result["packets"], os.path.basename(path)), (3, "-limit"))

    def test_without_the_program(self) -> None:
        path = self.file(many(3))
        with mock.patch.object(reader, "PROGRAM", "bin/none"):
            refused = self.refused("DEPENDENCY_MISSING", {"file_path": path})
        self.assertIn("make build", refused.message)
        with mock.patch.object(reader, "PROGRAM", "manifest.json"):  # no program
            refused = self.refused("DEPENDENCY_MISSING", {"file_path": path})
        self.assertIn("cannot be started", refused.message)

    def test_a_program_that_fails(self) -> None:
        for script, words in (("kill -9 $$", "signal 9"), ("echo nonsense; exit 3", "gave no report")):
            program = self.file("#!/bin/sh\n%s\n" % script, "program")
            os.chmod(program, 0o700)
            with mock.patch.object(reader, "PROGRAM", program):
                self.assertIn(words, self.refused("INTERNAL_ERROR", {"file_path": program}).message)

    def test_a_program_that_takes_too_long_is_ended(self) -> None:
        program = self.file("#!/bin/sh\nexec sleep 60\n", "program")
        os.chmod(program, 0o700)
        context = self.context()
        context.limits["timeout"] = 0.2
        with mock.patch.object(reader, "PROGRAM", program):
            self.refused("TIMEOUT", {"file_path": program}, context)

    def test_the_summary_stays_short(self) -> None:
        with open(os.path.join(HERE, "examples", "response.example.json"), encoding="utf-8") as file:
            response = json.load(file)
        r = response["result"]
        r["artifact"]["name"] = "n" * 500
        for name in ("dns_queries", "http_hosts", "tls_server_names"):
            r[name] = [{"name": "x" * 255, "count": 10**12, "first_packet": 1}] * 20
        for talker in r["talkers"]:
            talker["address"] = "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff"
        r["truncated"], r["truncated_at"], r["truncation"] = True, 10**12, "y" * 500
        self.assertLess(len(self.tool.summarize_for_llm(response)), 1000)


if __name__ == "__main__":
    unittest.main()
