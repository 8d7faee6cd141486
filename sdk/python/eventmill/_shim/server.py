"""Protocol 2 for all tools of a package and one session of an analyst.

Tools leave things for each other in module globals and on `sys`, so all of
them run in this interpreter, one call at a time, on the main thread.
"""

from __future__ import annotations

import os
import sys

from mortise import _start
from mortise._context import Context
from mortise._errors import Cancelled, PluginError
from mortise._plugin import Plugin
from mortise._session import Session
from mortise._wire import Wire, dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .answer import Answer
    from .tools import Tool, Tools


def start(argv: list[str], kit: str) -> None:
    """Serve the package argv[0] until the host is done with this process."""
    if len(argv) != 1 or not os.path.isdir(argv[0]):
        _start.leave(2, "usage: python3 -I -S _boot.py PACKAGE")
    root = os.path.abspath(argv[0])
    wire = Wire(*_start.claim())
    settle(kit)
    Server(root, wire).serve(wire.read_line())
    _start.leave(0)


def settle(kit: str) -> None:
    """Put the kit in the place of the SDK on the path: tools import `framework`, and what they spawn `plugins`, and none of our own."""
    sys.path[:] = [kit, os.path.join(kit, "_spawned"), *(path for path in sys.path if path != os.path.dirname(kit))]
    sys.argv[:] = ["eventmill"]


class Server(Session):
    """A session that executes tools in place of a plugin's operations."""

    def __init__(self, root: str, wire: Wire) -> None:
        super().__init__(Plugin("eventmill", version="2"), wire)
        self._root = root
        self._tools: Tools | None = None

    def _initialize(self, frame: dict[str, Any]) -> None:
        params = frame.get("params") or {}
        self.paths = params.get("paths") or {}
        self._frame_bytes = (params.get("limits") or {}).get("frame_bytes") or self._frame_bytes
        # No tool is named: finding them would read every manifest before the host asks for one.
        self._respond(frame["id"], dumps({"protocol": "2", "plugins": [], "concurrency": 1, "features": ["cancel"]}))

    def _describe(self, frame: dict[str, Any]) -> None:
        self._respond(frame["id"], '{"plugins":[]}')  # manifest.json says everything

    def _execute(self, frame: dict[str, Any]) -> None:
        id, params = frame["id"], frame.get("params") or {}
        name = str(params.get("operation", ""))
        if frame["method"] != "execute":
            self._refuse(id, -32601, f"{name} has no {frame['method']}")
            return
        tool = self._find(name[name.rfind("/") + 1 :])
        if tool is None:
            self._refuse(id, -32602, f"no manifest.json in {self._root} has the tool_name of {name!r}")
            return
        ctx = self._calls[params.get("call", "")] = Context(self, params)
        self._answer(id, tool, params.get("input"), ctx)

    def _find(self, name: str) -> Tool | None:
        if self._tools is None:
            from .tools import Tools

            self._tools = Tools(self._root)
        return self._tools.find(name)

    def _answer(self, id: Any, tool: Tool, payload: Any, ctx: Context) -> None:
        from .answer import INTERNAL_ERROR, failed
        from .execute import alone, execute

        assert self._tools is not None
        answer: Answer | Cancelled
        try:
            answer = execute(self._tools, tool, payload, ctx)
        except Cancelled as exc:
            answer = exc
        except BaseException as exc:  # of our own, or of a thread that aims exceptions at this one
            answer = failed(INTERNAL_ERROR, f"{tool.name}: {type(exc).__name__} outside of the tool", {})
        self._end(ctx)
        alone()
        if isinstance(answer, Cancelled):
            self._fail(id, answer)
            return
        try:
            self._respond(id, answer.text())
        except PluginError as exc:
            self._respond(id, self._unfit(tool, answer, exc).text())

    def _unfit(self, tool: Tool, answer: Answer, exc: PluginError) -> Answer:
        from .answer import INTERNAL_ERROR, failed

        message = f"{tool.name}: the result does not fit on the wire: {exc.message}"
        if exc.code == "limit_exceeded":
            message += "; write it to a file and register that as an artifact"
        if answer.saved:
            message += f" (it was saved as artifact {answer.saved})"
        return failed(INTERNAL_ERROR, message, {"reason": exc.code})
