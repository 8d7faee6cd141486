"""The whole plugin, spoken to over the protocol as the host does; and what it promises about memory."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOT = os.path.join(HERE, "..", "..", "..", "sdk", "python", "mortise", "_boot.py")
BOUND_KIB = 256 << 10


class Host:
    """Starts the plugin, makes calls one after the other, and ends it."""

    def __init__(self, cache: str) -> None:
        command = [sys.executable, "-I", "-X", "pycache_prefix=" + cache, BOOT, os.path.join(HERE, "plugin.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}, cwd=cache)
        self.ids = 0
        self.progress: list[dict] = []
        self.request("initialize", {
            "protocol": "2", "host": {"name": "test", "version": "0"}, "package_digest": "sha256:0", "scope": {"kind": "call", "id": "1"},
            "services": [], "limits": {"frame_bytes": 4194304, "in_flight": 64}, "paths": {"scratch": cache},
        })  # fmt: skip

    def request(self, method: str, params: dict) -> dict:
        self.ids += 1
        frame = {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if len(line) > 4194304:
                raise AssertionError("a frame of %d bytes" % len(line))
            frame = json.loads(line)
            if frame.get("id") == self.ids:
                return frame
            if frame.get("method") == "emit":
                self.progress.append(frame["params"]["data"])
        raise AssertionError("the plugin has ended")

    def call(self, **data) -> dict:
        frame = self.request("execute", {
            "call": "%032x" % self.ids, "operation": "pattern_extractor/pattern_extractor", "input": data,
            "context": {"auth": {}, "trace": {}, "key": ""}, "deadline_ms": 60000,
        })  # fmt: skip
        return frame.get("result") or {"status": "failed", "error": frame["error"]}

    def close(self) -> int:
        """End the plugin and return its peak resident size in KiB."""
        self.request("shutdown", {"deadline_ms": 2000})
        self.process.stdin.close()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        self.process.stdout.close()
        return usage.ru_maxrss


@unittest.skipUnless(os.path.exists(BOOT), "needs the Python SDK")
class Calls(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.host = Host(self.folder)

    def tearDown(self) -> None:
        if self.host:
            self.host.close()

    def file(self, name: str, content: bytes) -> dict:
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return {"path": path, "name": name, "size": len(content)}

    def test_the_example_is_a_real_answer(self) -> None:
        with open(os.path.join(HERE, "examples", "request.json")) as file:
            request = json.load(file)
        with open(os.path.join(HERE, "examples", "response.json")) as file:
            want = json.load(file)
        for artifact in request["artifacts"]:
            artifact["path"] = os.path.join(HERE, artifact["path"])
        got = self.host.call(**request)["data"]
        self.assertEqual(got, want)

    def test_members_are_those_of_the_schema(self) -> None:
        with open(os.path.join(HERE, "schemas", "output.json")) as file:
            schema = json.load(file)
        got = self.host.call(artifacts=[self.file("a", b"one line\n")])["data"]
        self.check(schema, got, "data")

    def check(self, schema: dict, value: object, at: str) -> None:
        """The part of JSON Schema that the output schema uses to say what is there."""
        if schema.get("type") == "object":
            self.assertEqual(set(schema["properties"]), set(value), at)
            for name, member in value.items():
                self.check(schema["properties"][name], member, at + "." + name)
        elif schema.get("type") == "array":
            for item in value:
                self.check(schema["items"], item, at + "[]")
        else:
            kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
            self.assertIsInstance(value, kinds[schema["type"]], at)

    def test_rare_templates_come_first(self) -> None:
        log = self.file("a", b"job 1 done\n" * 5 + b"disk sda is full\n" + b"user %d left\n" * 2)
        got = self.host.call(artifacts=[log])["data"]["templates"]
        self.assertEqual([(t["template"], t["count"]) for t in got][0], ("disk sda is full", 1))
        self.assertEqual([t["count"] for t in got], [1, 2, 5])
        got = self.host.call(artifacts=[log], order="common", limit=1)["data"]["templates"]
        self.assertEqual([t["count"] for t in got], [5])
        got = self.host.call(artifacts=[log], min_count=2)["data"]
        self.assertEqual([t["count"] for t in got["templates"]], [2, 5])
        self.assertEqual(got["totals"]["templates"], 3)

    def test_files_are_mined_together(self) -> None:
        got = self.host.call(artifacts=[self.file("a", b"job 1 done\n"), self.file("b", b"x\njob 2 done\n")])["data"]
        template = got["templates"][-1]
        self.assertEqual((template["first"], template["last"]), ({"file": "a", "line": 1}, {"file": "b", "line": 2}))

    def test_no_lines_is_no_error(self) -> None:
        got = self.host.call(artifacts=[self.file("a", b"")])
        self.assertEqual((got["status"], got["data"]["totals"]["lines"], got["data"]["templates"]), ("succeeded", 0, []))
        self.assertEqual(self.host.call(artifacts=[self.file("b", b"\n\n")])["data"]["totals"]["blank_lines"], 2)

    def test_files_that_cannot_be_read(self) -> None:
        good = self.file("a", b"x\n")
        for path, code in (("/no/such/file", "FILE_NOT_FOUND"), (self.folder, "NOT_A_FILE")):
            got = self.host.call(artifacts=[good, {"path": path, "name": "b"}])
            self.assertEqual(got["status"], "failed")
            self.assertIn(code, json.dumps(got["error"]))

    def test_the_same_input_gives_the_same_bytes(self) -> None:
        script = os.path.join(HERE, "tests", "generate_log.py")
        log = self.file("a", subprocess.check_output([sys.executable, "-B", script, "--bytes", "3000000", "--seed", "7"]))
        answers = []
        for _ in range(2):
            other = Host(self.folder)
            data = other.call(artifacts=[log], limit=500)["data"]
            other.close()
            answers.append(json.dumps(data))
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(len(json.loads(answers[0])["templates"]), json.loads(answers[0])["totals"]["templates"])

    def test_memory_is_bounded_when_no_two_lines_are_alike(self) -> None:
        table = bytes(97 + b % 26 if b < 245 else (32 if b < 253 else 10) for b in range(256))
        log = self.file("a", random.Random(5).getrandbits(8 * 20_000_000).to_bytes(20_000_000, "big").translate(table))
        got = self.host.call(artifacts=[log], limit=500)
        peak, self.host = self.host.close(), None
        self.assertEqual(got["data"]["totals"]["bytes"], 20_000_000)
        self.assertLess(peak, BOUND_KIB)
        print("20 MB without repetition:", got["metrics"], "peak %d MiB" % (peak >> 10), file=sys.stderr)

    def test_memory_is_bounded_by_lines_of_any_length(self) -> None:
        for name, content in (("one line", b"x1y " * 25_000_000), ("no text", b"\n" * 4_000_000), ("two letters", b"ab\n" * 2_000_000)):
            log = self.file("a", content)
            got = self.host.call(artifacts=[log])
            self.assertEqual(got["data"]["totals"]["bytes"], len(content), name)
        self.assertTrue(self.host.progress)
        peak, self.host = self.host.close(), None
        self.assertLess(peak, BOUND_KIB)


if __name__ == "__main__":
    unittest.main()
