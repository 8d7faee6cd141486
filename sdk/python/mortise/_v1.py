"""Protocol version 1: one handshake, one request, one response, then exit."""

from __future__ import annotations

from ._context import Context
from ._errors import MortiseError, PluginError, ServiceError
from ._result import Result
from ._session import aside, dumps_result, error_data, error_message
from ._start import leave
from ._wire import loads, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._plugin import Plugin
    from ._wire import Wire

LINE_BYTES = 1 << 20
VERSIONS = ("rterm.plugin.v1", "1")


class OneCall:
    """The Host of a call in version 1, which has no services: log records go to standard error."""

    paths: dict[str, str] = {}
    fd = -1

    def request(self, ctx: Context, method: str, params: dict[str, Any]) -> Any:
        raise ServiceError(f"protocol version 1 has no {method}", code="service_denied")

    def notify(self, method: str, params: dict[str, Any]) -> None:
        aside(method, params)

    def poll(self, now: bool = False) -> None: ...


def serve(plugin: Plugin, wire: Wire, handshake: dict[str, Any]) -> None:
    """Answer the handshake and one request."""
    asked = handshake.get("protocol_version")
    manifest = {
        "plugin_id": plugin.name,
        "plugin_version": plugin.version,
        "protocol_version": asked if asked in VERSIONS else VERSIONS[0],
        "exposed_tools": list(plugin.operations),
        "capabilities": [],
    }
    _write(wire, {"type": "handshake", "manifest": manifest})
    line = wire.read_line()
    if line is None:
        return
    try:
        request = loads(line)
    except (ValueError, RecursionError) as exc:
        leave(1, f"mortise: the host wrote something that is no frame: {exc}")
    head = {"type": "response", "request_id": request.get("request_id")}
    try:
        op = plugin.operations.get(request.get("tool_name", ""))
        if op is None:
            raise PluginError(f"{plugin.name} has no tool {request.get('tool_name')!r}", code="tool_not_exposed")
        value = op.call(request.get("input"), Context(OneCall(), request))
        body = value.members() if isinstance(value, Result) else {"data": value}
        body.pop("status", None)
        _write(wire, {**head, "status": "ok", "output": body.pop("data"), "metadata": body})
    except BaseException as exc:
        if not isinstance(exc, MortiseError):
            error_data(exc)  # for the traceback
        code = exc.code if isinstance(exc, MortiseError) else "plugin_error"
        _write(wire, {**head, "status": "error", "error": {"code": code, "message": error_message(exc)}})


def _write(wire: Wire, frame: dict[str, Any]) -> None:
    wire.write(pack(dumps_result(frame) + "\n", LINE_BYTES))
