"""The host's side of a conversation, for tests: a plugin as a real process."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
import textwrap
from typing import Any

SDK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOT = os.path.join(SDK, "mortise", "_boot.py")
REFERENCE = os.path.join(SDK, "reference", "plugin.py")
TESTDATA = os.path.join(os.path.dirname(os.path.dirname(SDK)), "protocol", "testdata")

sys.path.insert(0, SDK)
sys.dont_write_bytecode = True
_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_written = 0
CONTEXT = {"auth": {"tenant_id": "local"}, "trace": {"correlation_id": "c1"}, "key": "k1"}


def write_plugin(source: str) -> str:
    """Write a plugin file in a folder of its own and return its path."""
    global _written
    _written += 1
    folder = os.path.join(_folder.name, str(_written))
    os.mkdir(folder)
    path = os.path.join(folder, "plugin.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(source))
    return path


class Peer:
    """A plugin process and the two ends of its pipes."""

    def __init__(self, path: str, boot: bool = True) -> None:
        options = ["-I", "-S", "-X", f"pycache_prefix={_folder.name}/pycache"]
        command = [sys.executable, *options, BOOT, path] if boot else [sys.executable, "-B", path]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={} if boot else {"PYTHONPATH": SDK},
        )
        self._buffer = b""
        self._id = 0

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def send(self, frame: Any) -> None:
        self.send_bytes(json.dumps(frame, ensure_ascii=False).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def receive(self, seconds: float = 5) -> Any:
        """Return the next frame; AssertionError if none comes, or output ends."""
        while b"\n" not in self._buffer:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                raise AssertionError(f"no line within {seconds} s")
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            if not chunk:
                raise AssertionError("output ended: " + self.process.stderr.read().decode())
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line.decode("utf-8"))

    def initialize(self, **params: Any) -> Any:
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocol": "2", **params}})
        return self.receive()["result"]

    def execute(self, operation: str, input: Any, call: str = "") -> int:
        """Begin a call and return the id of its request; its token is `call`, or that id."""
        self._id += 1
        params = {"call": call or str(self._id), "operation": f"test.plugin/{operation}", "input": input}
        params.update(context=CONTEXT, deadline_ms=30000)
        self.send({"jsonrpc": "2.0", "id": self._id, "method": "execute", "params": params})
        return self._id

    def call(self, operation: str, **input: Any) -> Any:
        """Run a call to its answer, past what it says meanwhile; return its data or its error."""
        id = self.execute(operation, input)
        while True:
            frame = self.receive()
            if frame.get("id") == id:
                return frame["result"]["data"] if "result" in frame else frame["error"]

    def cancel(self, call: str) -> None:
        self.send({"jsonrpc": "2.0", "method": "$/cancel", "params": {"call": call, "reason": "cancelled"}})

    def end(self, seconds: float = 5) -> tuple[int, str]:
        """Close the plugin's input and return its exit status and standard error."""
        self.process.stdin.close()
        return self.wait(seconds)

    def wait(self, seconds: float = 5) -> tuple[int, str]:
        """Wait for the plugin's exit and return its status and standard error."""
        status = self.process.wait(seconds)
        return status, self.process.stderr.read().decode("utf-8", "replace")
