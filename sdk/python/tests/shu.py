"""The host's side of a Shu conversation, for tests: a plugin as a real process."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from peer import SDK, Peer

KIT = os.path.join(SDK, "shu")
ALL = ["audit", "auth", "cache", "http", "identity", "kb", "ocr", "query", "rate_limit", "scheduler", "secrets", "storage"]
_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_made = 0


def folder() -> str:
    """Return a new directory."""
    global _made
    _made += 1
    path = os.path.join(_folder.name, str(_made))
    os.mkdir(path)
    return path


def package(source: str = "", **files: str) -> str:
    """Write a plugin, plugin.py and further files by their paths with / as __, and return its directory."""
    root = os.path.join(folder(), "some-directory")
    os.mkdir(root)
    texts = {"plugin.py": source, **{_path(name): text for name, text in files.items()}}
    for name, text in texts.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
    return root


def _path(name: str) -> str:
    return "__init__".join(part.replace("__", "/") for part in name.split("__init__")) + ".py"


def execute(body: str, head: str = "") -> str:
    """Return the source of a plugin whose execute has that body."""
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "        ")
    return f"{textwrap.dedent(head)}\nclass Plugin:\n    async def execute(self, params, context, host):\n{body}\n"


class Shu(Peer):
    """A served plugin and a small host: `services` says what is answered to which request."""

    def __init__(self, root: str, capabilities: list[str] | None = None, module: str = "plugins.notes.plugin", **about: Any) -> None:
        self.scratch = os.path.realpath(folder())
        told = {"name": "notes", "version": "1.2.3", "entry": "plugin.py", "module": module, "class": "Plugin"}
        told.update(capabilities=ALL if capabilities is None else capabilities, **about)
        options = ["-I", "-S", "-X", f"pycache_prefix={_folder.name}/pycache"]
        command = [sys.executable, *options, os.path.join(KIT, "_boot.py"), root, json.dumps(told)]
        pipe = subprocess.PIPE
        env = {"TMPDIR": self.scratch, "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=env, cwd=self.scratch)
        self._buffer = b""
        self._id = 0
        self.context: dict[str, Any] = {
            "auth": {"tenant_id": "local", "principal_id": "u-7", "principal": {"type": "user", "id": "u-7"}, "scopes": ["s"]},
            "trace": {"correlation_id": "c1"},
            "key": "k1",
        }
        self.requests: list[tuple[str, Any]] = []
        self.logs: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.services: dict[str, Callable[[dict[str, Any]], Any]] = {}
        try:
            self.handshake = self.initialize(paths={"scratch": self.scratch}, limits={"frame_bytes": 4 << 20, "in_flight": 64})
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Shu:
        return self

    def begin(self, operation: str, params: Any, method: str = "execute") -> int:
        """Begin a call and return its id; its token is that id in hexadecimal."""
        self._id += 1
        asked = {"call": f"{self._id:032x}", "operation": f"notes/{operation}", "input": params}
        asked.update(context=self.context, deadline_ms=30000)
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": asked})
        return self._id

    def finish(self, id: int, seconds: float = 10) -> Any:
        """Serve a call to its answer and return that frame."""
        while True:
            frame = self.receive(seconds)
            if frame.get("id") == id and "method" not in frame:
                return frame
            self.take(frame)

    def take(self, frame: Any) -> None:
        """Take in what a plugin says or asks while it works."""
        if frame.get("method") == "log":
            self.logs.append(frame["params"])
        elif frame.get("method") == "emit":
            self.events.append(frame["params"])
        elif "method" in frame:
            self.serve(frame)

    def run(self, operation: str = "execute", method: str = "execute", **params: Any) -> Any:
        """Call an operation and return its result, or the error of a call that failed as a whole."""
        frame = self.finish(self.begin(operation, params, method))
        return frame["result"] if "result" in frame else frame["error"]

    def describe(self) -> Any:
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": "describe", "params": {}})
        frame = self.finish(self._id)
        return frame["result"]["plugins"][0] if "result" in frame else frame["error"]

    def serve(self, frame: Any) -> None:
        method, args = frame["method"], frame["params"]["args"]
        self.requests.append((method, args))
        try:
            if method not in self.services:
                raise LookupError(f"no {method}")
            answer: dict[str, Any] = {"result": self.services[method](args)}
        except LookupError as exc:
            data = {"code": "service_denied", "details": {}, "retryable": False, "retry_after_ms": 0}
            answer = {"error": {"code": -32000, "message": str(exc.args[0]), "data": data}}
        self.send({"jsonrpc": "2.0", "id": frame["id"], **answer})


class Hosted(unittest.TestCase):
    def shu(self, body: str, head: str = "import asyncio", capabilities: list[str] | None = None, **services: object) -> Shu:
        """Serve a plugin whose execute ends in `return <what is wanted>`; services by name with _ for the dot."""
        shu = Shu(package(execute(body, head)), capabilities).__enter__()
        self.addCleanup(shu.__exit__)
        for name, answer in services.items():
            shu.services[name.replace("__", ".")] = answer if callable(answer) else lambda args, answer=answer: answer
        return shu

    def said(self, shu: Shu, **params: object) -> object:
        result = shu.run("list", **params)
        self.assertEqual(result["status"], "succeeded", result)
        return result["data"]["said"]


class Web:
    """A real server on this machine, and http.fetch as the host does it. `answers` is by path."""

    def __init__(self) -> None:
        web = self
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.seen: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                web.seen.append({"method": self.command, "path": self.path, "headers": headers, "body": body.decode()})
                status, told, data = web.answers.get(self.path.partition("?")[0], (404, {}, b"nothing here"))
                self.send_response(status)
                for name, value in {**told, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def fetch(self, args: dict[str, Any]) -> Any:
        """Answer http.fetch, as docs/services.md has it."""
        pairs = []
        for name, value in (args.get("params") or {}).items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    pairs.append((name, one if isinstance(one, str) else json.dumps(one)))
        url = args["url"] + ("?" + urlencode(pairs) if pairs else "")
        headers, data = dict(args.get("headers") or {}), None
        if "json" in args:
            data = json.dumps(args["json"]).encode()
            headers.setdefault("Content-Type", "application/json")
        elif "body" in args:
            data = args["body"].encode()
        try:
            with urlopen(Request(url, data, headers, method=args["method"]), timeout=60) as answer:
                return self._told(answer.status, answer.headers, answer.read(), args, url)
        except HTTPError as exc:
            with exc:
                return self._told(exc.code, exc.headers, exc.read(), args, url)

    def _told(self, status: int, headers: Any, body: bytes, args: dict[str, Any], url: str) -> Any:
        told = {"status_code": status, "headers": {k.lower(): v for k, v in headers.items()}, "url": url, "truncated": False}
        kind = told["headers"].get("content-type", "")
        if args["as"] == "auto" and kind.startswith("application/json"):
            return {**told, "json": json.loads(body)}
        if args["as"] == "bytes":
            import base64

            return {**told, "body_base64": base64.b64encode(body).decode()}
        return {**told, "body": body.decode()}


def until(condition: Callable[[], bool], seconds: float = 5) -> bool:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
