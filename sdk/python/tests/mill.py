"""The host's side of an Event Mill conversation, for tests: a tree of tools as a real process."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from typing import Any, Callable

from peer import SDK, Peer

KIT = os.path.join(SDK, "eventmill")
TOOL = """
    from framework.plugins.protocol import ToolResult, ValidationResult

    class Tool:
        def metadata(self): return {"tool_name": "TOOL_NAME", "version": "1.0.0"}
        def validate_inputs(self, payload): return ValidationResult(ok=True)
        def execute(self, payload, context): return ToolResult(ok=True, result={"said": "done"})
        def summarize_for_llm(self, result): return "It was done."
"""
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


def write(path: str, text: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(text))
    return path


def write_tool(root: str, name: str, source: str = TOOL, pillar: str = "log_analysis", inside: str | None = None, **manifest: Any) -> str:
    """Write a tool into the tree root, or into the directory `inside`, and return its directory."""
    directory = os.path.join(root, pillar, name) if inside is None else inside
    about = {"tool_name": name, "version": "1.0.0", "pillar": pillar, "entry_point": "tool.py", "class_name": "Tool", **manifest}
    write(os.path.join(directory, "manifest.json"), json.dumps(about))
    write(os.path.join(directory, "tool.py"), textwrap.dedent(source).replace("TOOL_NAME", name))
    return directory


def tree(name: str = "plugins", **tools: str) -> str:
    """Write a tree of tools, each by its source, and return its root."""
    root = os.path.join(folder(), name)
    os.mkdir(root)
    for tool, source in tools.items():
        write_tool(root, tool, source)
    return root


class Mill(Peer):
    """A served package, and a small host: services is what it answers to requests."""

    def __init__(self, root: str, frame_bytes: int = 4 << 20, **session: Any) -> None:
        self.scratch = os.path.realpath(folder())
        self.root = root
        command = [sys.executable, "-I", "-S", "-X", f"pycache_prefix={_folder.name}/pycache", os.path.join(KIT, "_boot.py"), root]
        pipe = subprocess.PIPE
        env = {"TMPDIR": self.scratch, "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=env, cwd=self.scratch)
        self._buffer = b""
        self._id = 0
        self.opened: dict[str, Any] = {
            "session_id": "sess_0123456789ab",
            "pillar": "log_analysis",
            "artifacts": [],
            "config": {},
            "llm_enabled": False,
            "limits": {"timeout": 30, "max_output_size": 4 << 20, "max_artifact_size": 1 << 30},
            **session,
        }
        self.requests: list[tuple[str, Any]] = []  # what was asked, but for session.open
        self.logs: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []  # progress, and content
        self.registered: list[dict[str, Any]] = []
        self.reference: dict[str, Any] = {}
        self.model: Callable[[str, dict[str, Any]], Any] = lambda method, args: {"ok": True, "text": "an answer"}
        self.handshake = self.initialize(paths={"scratch": self.scratch}, limits={"frame_bytes": frame_bytes, "in_flight": 8})

    def __enter__(self) -> Mill:
        return self

    def load(self, name: str, data: bytes, **members: Any) -> dict[str, Any]:
        """Put a file among the artifacts of the session."""
        id = f"art_{len(self.opened['artifacts']):08x}"
        path = os.path.join(folder(), id, name)
        os.mkdir(os.path.dirname(path))
        with open(path, "wb") as file:
            file.write(data)
        ref = {"artifact_id": id, "artifact_type": "log_stream", "file_path": path, "storage_uri": None}
        ref.update(source_tool=None, metadata={}, **members)
        self.opened["artifacts"].append(ref)
        return ref

    def begin(self, tool: str, payload: Any) -> int:
        """Begin a call and return its id."""
        self._id += 1
        params = {"call": f"{self._id:032x}", "operation": f"{tool}/{tool}", "input": payload, "context": {}, "deadline_ms": 30000}
        self.send({"jsonrpc": "2.0", "id": self._id, "method": "execute", "params": params})
        return self._id

    def finish(self, id: int, seconds: float = 10) -> Any:
        """Serve a call to its answer and return that frame."""
        while True:
            frame = self.receive(seconds)
            if frame.get("id") == id and "method" not in frame:
                return frame
            if frame.get("method") == "log":
                self.logs.append(frame["params"])
            elif frame.get("method") == "emit":
                self.told.append(frame["params"])
            elif "method" in frame:
                self.serve(frame)

    def run(self, tool: str, **payload: Any) -> Any:
        """Call a tool and return its result, or the error of a call that failed as a whole."""
        frame = self.finish(self.begin(tool, payload))
        return frame["result"] if "result" in frame else frame["error"]

    def serve(self, frame: Any) -> None:
        try:
            answer = {"result": self.answer(frame["method"], frame["params"]["args"])}
        except LookupError as exc:
            answer = {"error": {"code": -32000, "message": str(exc), "data": {"code": "service_denied"}}}
        self.send({"jsonrpc": "2.0", "id": frame["id"], **answer})

    def answer(self, method: str, args: dict[str, Any]) -> Any:
        if method == "session.open":
            return self.opened
        self.requests.append((method, args))
        if method == "reference_data.get":
            found = args["key"] in self.reference
            return {"found": found, "value": self.reference.get(args["key"])}
        if method == "artifacts.register":
            return self._register(args)
        if method.startswith("llm."):
            return self.model(method, args)
        raise LookupError(f"no {method}")

    def _register(self, args: dict[str, Any]) -> Any:
        """Take a file as the host does: what is beneath the scratch directory, or among the artifacts."""
        path = os.path.realpath(os.path.join(self.scratch, args["file_path"]))
        known = [ref["file_path"] for ref in self.opened["artifacts"]]
        if not path.startswith(self.scratch + os.sep) and path not in known:
            raise LookupError(f"{path} is not beneath the scratch directory")
        with open(path, "rb") as file:
            data = file.read()
        ref = self.load(os.path.basename(path), data)
        ref["artifact_id"] = args.get("artifact_id", ref["artifact_id"])
        ref.update(artifact_type=args.get("artifact_type", "text"), source_tool=args.get("source_tool"), metadata=args.get("metadata", {}))
        self.registered.append({**ref, "asked": args, "data": data})
        return ref


def contract(root: str, name: str) -> Any:
    """Run the contract tests of a tool and return the report."""
    command = [sys.executable, "-I", "-S", "-B", os.path.join(KIT, "_contract.py"), root, name]
    done = subprocess.run(command, capture_output=True, timeout=60, env={})
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return json.loads(done.stdout)
