"""The reference plugin replays every transcript of protocol/testdata."""

from __future__ import annotations

import glob
import json
import os
import unittest
from typing import Any

from peer import REFERENCE, TESTDATA, Peer


def sections(path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("-- ") and line.rstrip().endswith(" --"):
                name = line.strip()[3:-3]
                found[name] = ""
            else:
                found[name] = found.get(name, "") + line
    return found


def same(want: Any, got: Any) -> bool:
    """Compare JSON values; "<any>" matches anything, and 1, 1.0 and true differ."""
    if want == "<any>":
        return True
    if type(want) is not type(got):
        return False
    if isinstance(want, dict):
        return want.keys() == got.keys() and all(same(want[key], got[key]) for key in want)
    if isinstance(want, list):
        return len(want) == len(got) and all(map(same, want, got))
    return bool(want == got)


class Transcripts(unittest.TestCase):
    def test_the_reference_plugin_says_its_lines(self) -> None:
        paths = sorted(glob.glob(os.path.join(TESTDATA, "*.txtar")))
        self.assertGreaterEqual(len(paths), 9)
        for path in paths:
            with self.subTest(os.path.basename(path)):
                self.replay(sections(path))

    def replay(self, story: dict[str, str]) -> None:
        first = story.get("version", "").strip() == "1"
        with Peer(REFERENCE) as plugin:
            for line in story["conversation"].splitlines():
                arrow, text = line[:3], line[3:]
                if arrow == "-> ":
                    plugin.send_bytes(text.encode() + b"\n")
                    continue
                want, got = json.loads(text), plugin.receive()
                if first and "manifest" in want:  # an SDK may expose more tools than the file names
                    tools = got["manifest"]["exposed_tools"]
                    self.assertLessEqual(set(want["manifest"]["exposed_tools"]), set(tools))
                    want["manifest"]["exposed_tools"] = tools
                self.assertTrue(same(want, got), f"\nwant {text}\n got {json.dumps(got)}")
            self.assertEqual(plugin.wait()[0], 0, "exits by itself")


class Version1(unittest.TestCase):
    def run_one(self, version: str, tool: str, input: Any) -> tuple[Any, Any]:
        with Peer(REFERENCE) as plugin:
            plugin.send({"type": "handshake", "protocol_version": version})
            manifest = plugin.receive()["manifest"]
            plugin.send({"type": "request", "request_id": "r1", "tool_name": tool, "context": {}, "input": input})
            answer = plugin.receive()
            self.assertEqual(plugin.wait()[0], 0)
            return manifest, answer

    def test_answers_the_version_it_was_asked_for(self) -> None:
        for asked, want in [("1", "1"), ("rterm.plugin.v1", "rterm.plugin.v1"), ("7", "rterm.plugin.v1")]:
            self.assertEqual(self.run_one(asked, "echo", {"value": 1})[0]["protocol_version"], want)

    def test_failures_have_codes(self) -> None:
        cases = {"fail": "invalid_input", "raise": "plugin_error", "nothing": "tool_not_exposed", "forbidden": None}
        for tool, code in cases.items():
            answer = self.run_one("1", tool, {})[1]
            if code is None:  # services are refused, and the plugin lives with it
                self.assertEqual(answer["output"], {"refused": "service_denied"})
            else:
                self.assertEqual(answer["error"]["code"], code)

    def test_log_records_go_to_stderr_and_input_may_end_early(self) -> None:
        self.assertEqual(self.run_one("1", "count", {"to": 1})[1]["output"], {"counted": 1})
        with Peer(REFERENCE) as plugin:
            plugin.send({"type": "handshake", "protocol_version": "1"})
            plugin.receive()
            self.assertEqual(plugin.end()[0], 0)
