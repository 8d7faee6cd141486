"""The contract tests of a tool, those of the ten that need its code.

Every test runs for itself: one that fails says nothing of the others. The
four that are about JSON Schema are the host's and are left to it, with ok null.
"""

from __future__ import annotations

import os
import sys

from mortise import _start
from mortise._context import cut
from mortise._errors import PluginError
from mortise._session import error_message
from mortise._wire import Wire, dumps, loads, pack

from .server import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .tools import Tool, Tools

MAX_SUMMARY = 2000
MAX_EXAMPLE = 4 << 20
FRAME = 4 << 20

NAMES = {
    1: "manifest.json loads and fits the manifest schema",
    2: "the input and output schemas load and are JSON Schema",
    3: "the entry_point module imports",
    4: "the tool class can be instantiated",
    5: "validate_inputs accepts the example request",
    6: "validate_inputs rejects a malformed request",
    7: "the example request fits the input schema",
    8: "the example response fits the output schema",
    9: "summarize_for_llm answers the example response in under 2000 characters",
    10: "metadata has tool_name and version",
}
REQUEST = "examples/request.example.json"
RESPONSE = "examples/response.example.json"


class Failed(Exception):
    """A test that failed: why, and a pointer to what is to be looked at."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


def main(argv: list[str], kit: str) -> None:
    """Run the tests of tool argv[1] in package argv[0] and write the report to standard output."""
    if len(argv) != 2 or not os.path.isdir(argv[0]):
        _start.leave(2, "usage: python3 -I -S _contract.py PACKAGE TOOL")
    root = os.path.abspath(argv[0])
    wire = Wire(*_start.claim())  # what a tool prints must not get between
    settle(kit)
    report = _in_workspace(root, argv[1])
    try:
        line = pack(dumps(report) + "\n", FRAME)
    except (PluginError, TypeError, ValueError) as exc:
        _start.leave(1, f"eventmill: the report cannot be written: {error_message(exc)}")
    wire.write(line)
    _start.leave(0)


def _in_workspace(root: str, name: str) -> dict[str, Any]:
    import shutil
    import tempfile

    from .workspace import enter

    scratch = tempfile.mkdtemp(prefix="contract-")
    try:
        enter(scratch)
        return run(root, name)
    finally:
        os.chdir("/")
        shutil.rmtree(scratch, ignore_errors=True)


def run(root: str, name: str) -> dict[str, Any]:
    """Return the report: {tool, tests[{n, name, ok, message, pointer}], summary, summary_length}."""
    from .tools import Tools

    tools = Tools(root)
    tool = tools.find(name)
    report: dict[str, Any] = {"tool": name, "summary": "", "summary_length": 0}
    own = _Tests(tools, tool, report) if tool is not None else None
    report["tests"] = [_test(n, own, root) for n in sorted(NAMES)]
    return report


def _test(n: int, own: _Tests | None, root: str) -> dict[str, Any]:
    test: dict[str, Any] = {"n": n, "name": NAMES[n], "ok": None, "message": "", "pointer": ""}
    if n in (1, 2, 7, 8):
        return {**test, "message": "left to the host"}
    if own is None:
        return {**test, "ok": False, "message": f"no manifest.json in {root} has this tool_name", "pointer": "manifest.json#/tool_name"}
    try:
        message = own.tests[n]()
        return {**test, "ok": True, "message": message}
    except Failed as exc:
        return {**test, "ok": False, "message": cut(exc, 2048), "pointer": exc.pointer}
    except BaseException as exc:
        message = f"{type(exc).__name__}: {error_message(exc)}"
        try:
            sys.excepthook(type(exc), exc, exc.__traceback__)
        except BaseException:
            pass  # the hook is the tool's
        return {**test, "ok": False, "message": cut(message, 2048), "pointer": own.pointers[n]}


class _Tests:
    """The tests of one tool; each returns what there is to say beside "passed"."""

    def __init__(self, tools: Tools, tool: Tool, report: dict[str, Any]) -> None:
        self._tools = tools
        self._tool = tool
        self._report = report
        self.tests: dict[int, Callable[[], str]] = {
            3: self.imports,
            4: self.instantiates,
            5: self.accepts,
            6: self.rejects,
            9: self.summarizes,
            10: self.describes_itself,
        }
        self.pointers = {
            3: "manifest.json#/entry_point",
            4: "manifest.json#/class_name",
            5: REQUEST,
            6: REQUEST,
            9: RESPONSE,
            10: "manifest.json#/class_name",
        }

    def imports(self) -> str:
        from .answer import Failure
        from .missing import missing

        try:
            self._tools.module(self._tool)
        except Failure as exc:
            raise Failed(exc.message, self.pointers[3]) from None
        except ImportError as exc:
            known = missing(exc, self._tool.name, self._tool.directory)
            if known is None:
                raise
            raise Failed(f"{known.code}: {known.message}", self.pointers[3]) from None
        return ""

    def instantiates(self) -> str:
        self._instance()
        return ""

    def accepts(self) -> str:
        instance, request = self._instance(), self._example(REQUEST)
        refusals = _refusals(instance, request)
        if refusals is None:
            return ""
        for name in ("payload", "input", "inputs", "params", "arguments"):
            inner = request.get(name)
            if isinstance(inner, dict) and _refusals(instance, inner) is None:
                return f"the request is its member {name!r}"
        raise Failed("validate_inputs refuses the example request: " + "; ".join(refusals[:10]), REQUEST)

    def rejects(self) -> str:
        instance, request = self._instance(), self._example(REQUEST)
        accepted, raised = [], []
        for what, broken in malformed(request):
            try:
                if _refusals(instance, broken) is not None:
                    return f"rejected: {what}"
                accepted.append(what)
            except Exception as exc:
                raised.append(f"{what} ({type(exc).__name__})")
        told = f"accepted: {', '.join(accepted[:8])}" if accepted else ""
        if raised:
            told += f"{'; ' if told else ''}raised, which is no answer: {', '.join(raised[:8])}"
        raise Failed(f"validate_inputs rejects none of {len(accepted) + len(raised)} malformed requests; {told}", REQUEST)

    def summarizes(self) -> str:
        instance = self._instance()
        summary = instance.summarize_for_llm(self._result())
        if not isinstance(summary, str):
            raise Failed(f"summarize_for_llm returned a value of type {type(summary).__name__}", RESPONSE)
        self._report["summary"], self._report["summary_length"] = cut(summary, 4 * MAX_SUMMARY), len(summary)
        if not summary.strip():
            raise Failed("the summary is empty", RESPONSE)
        if len(summary) >= MAX_SUMMARY:
            raise Failed(f"the summary has {len(summary)} characters; it must stay under {MAX_SUMMARY}", RESPONSE)
        return ""

    def describes_itself(self) -> str:
        said = self._instance().metadata()
        if not isinstance(said, dict):
            raise Failed(f"metadata returned a value of type {type(said).__name__} in place of a dict", self.pointers[10])
        absent = [name for name in ("tool_name", "version") if not said.get(name)]
        if absent:
            raise Failed(f"metadata lacks {', '.join(absent)}", "manifest.json#/" + absent[0])
        manifest = self._tool.manifest
        other = [name for name in ("tool_name", "version") if said[name] != manifest.get(name)]
        return "; ".join(f"{name} is {said[name]!r} and in manifest.json {manifest.get(name)!r}" for name in other)

    def _instance(self) -> Any:
        from .answer import Failure

        try:
            return self._tools.instance(self._tool)
        except Failure as exc:
            raise Failed(exc.message, self.pointers[4]) from None

    def _example(self, name: str) -> dict[str, Any]:
        """Return an example; each test gets one of its own."""
        path = os.path.join(self._tool.directory, *name.split("/"))
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_EXAMPLE + 1)
            if len(data) > MAX_EXAMPLE:
                raise ValueError(f"larger than {MAX_EXAMPLE} bytes")
            return loads(data[3:] if data.startswith(b"\xef\xbb\xbf") else data)
        except FileNotFoundError:
            raise Failed(f"{name} is not there", name) from None
        except (OSError, ValueError, RecursionError) as exc:
            raise Failed(f"{name} cannot be read: {error_message(exc)}", name) from None

    def _result(self) -> Any:
        """Return the example response as the tool's own kind of result: the envelope, or what is inside of it."""
        from framework.plugins.protocol import ToolResult

        said = self._example(RESPONSE)
        if not isinstance(said.get("ok"), bool):
            said = {"ok": True, "result": said}
        names = ("ok", "result", "error_code", "message", "details", "output_artifacts")
        members = {name: said[name] for name in names if name in said}
        own = getattr(self._tools.module(self._tool), "ToolResult", None)
        if isinstance(own, type) and own is not ToolResult:
            try:
                return own(**members)
            except TypeError:
                pass  # it has fewer members, or takes them in another way
        return ToolResult(**members)


def malformed(request: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return requests derived from a good one, each broken in a way of its own, with what was done to it."""
    found: list[tuple[str, Any]] = [("an empty request", {})]
    for name in request:
        found.append((f"without {name}", {other: value for other, value in request.items() if other != name}))
    for name, value in request.items():
        found.append((f"{name} of another type", {**request, name: _other_type(value)}))
    if request:
        found.append(("null in every member", dict.fromkeys(request)))
        found.append(("another type in every member", {name: _other_type(value) for name, value in request.items()}))
        found.append(("an empty text in every member", dict.fromkeys(request, "")))
    found.append(("an unknown member alone", {"no_such_member": True}))
    found.append(("a list in place of an object", [request]))
    return found


def _other_type(value: Any) -> Any:
    if isinstance(value, (str, dict)):
        return [["not", {"what": "was asked for"}]]
    return {"not": "what was asked for"}


def _refusals(instance: Any, payload: Any) -> list[str] | None:
    """Return why validate_inputs refuses, None if it accepts; the payload stays as it was."""
    import copy

    from .answer import validation_errors

    return validation_errors(instance.validate_inputs(copy.deepcopy(payload)))
