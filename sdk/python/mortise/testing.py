"""A stand-in host for a plugin's own tests.

    from mortise.testing import call

    outcome = call(plugin, "word_count", {"text": "to be"})
    assert outcome.data == 2

Everything happens in this process. What goes in and what comes out has been
through JSON, as it would have been on the wire. A cache is there; other
services are given by name, as functions of their arguments or as values.
"""

from __future__ import annotations

from ._context import Context
from ._errors import MortiseError, PluginError, ServiceError
from ._plugin import Plugin
from ._question import answer
from ._result import Result
from ._session import dumps_result
from ._wire import loads, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    from ._plugin import Operation

__all__ = ["Outcome", "call", "hook", "preview", "reconcile"]


class Outcome:
    """What a call left behind.

    Attributes:
        data: what the operation returned, as the caller would read it.
        result: all members of the result, `data` and `status` among them.
        logs: the log records, each {level, message, fields}.
        progress: the progress that was sent, each with what it had of message, done, total, unit.
        content: what was emitted, in order.
        requests: the services asked for, each (method, args).
    """

    def __init__(self) -> None:
        self.data: Any = None
        self.result: dict[str, Any] = {}
        self.logs: list[dict[str, Any]] = []
        self.progress: list[dict[str, Any]] = []
        self.content: list[Any] = []
        self.requests: list[tuple[str, Any]] = []


class _StandIn:
    """The Host of a context under test."""

    def __init__(self, outcome: Outcome, services: Mapping[str, Any], paths: Mapping[str, str]) -> None:
        self.paths = paths
        self.fd = -1
        self._outcome = outcome
        self._services = services
        self._kept: dict[str, Any] = {}

    def request(self, ctx: Context, method: str, params: dict[str, Any]) -> Any:
        ctx.check()
        params = _through_json(params)
        args: Any = params if method == "operations.call" else params["args"]
        self._outcome.requests.append((method, args))
        if method in self._services:
            service = self._services[method]
            if isinstance(service, Exception):
                raise service
            return _through_json(service(args) if callable(service) else service)
        if method == "cache.get":
            found = args["key"] in self._kept
            return {"found": True, "value": self._kept[args["key"]]} if found else {"found": False}
        if method == "cache.set":
            self._kept[args["key"]] = args["value"]
            return {}
        if method == "cache.delete":
            self._kept.pop(args["key"], None)
            return {}
        raise ServiceError(f"the test grants no {method}", code="service_denied")

    def notify(self, method: str, params: dict[str, Any]) -> None:
        params = _through_json(params)
        if method == "log":
            self._outcome.logs.append({name: params[name] for name in ("level", "message", "fields")})
        else:
            kept = self._outcome.progress if params["kind"] == "progress" else self._outcome.content
            kept.append(params["data"])

    def poll(self, now: bool = False) -> None: ...


def call(
    plugin: Plugin,
    operation: str,
    input: Mapping[str, Any] | None = None,
    *,
    services: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    paths: Mapping[str, str] | None = None,
    deadline_ms: int = 30000,
    cancelled: bool = False,
) -> Outcome:
    """Call an operation as the host would and return what came of it.

    Whatever the operation raises comes through as it is: PluginError,
    InvalidInput, any other exception. A result that is not JSON raises
    PluginError with the code INVALID_RESULT. `services` maps names such as
    "secrets.get" to a function of the arguments, a value, or an exception to
    raise; with `cancelled` the caller has given up before the call begins.
    """
    op = _operation(plugin, operation)
    outcome = Outcome()
    ctx = _context(outcome, services, context, paths, deadline_ms)
    ctx._cancelled = cancelled
    try:
        value = op.call(_through_json(input or {}), ctx)
    finally:
        ctx._open = False
    result = value.members() if isinstance(value, Result) else {"status": "succeeded", "data": value}
    outcome.result = _through_json(result)
    outcome.data = outcome.result["data"]
    return outcome


def preview(
    plugin: Plugin,
    operation: str,
    input: Mapping[str, Any] | None = None,
    *,
    services: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
) -> Any:
    """Return what an operator would show of a call; options as for call."""
    return _ask(plugin, operation, "preview", {"input": input or {}}, services, context)["preview"]


def reconcile(
    plugin: Plugin,
    operation: str,
    input: Mapping[str, Any] | None = None,
    effects: Sequence[Mapping[str, Any]] = (),
    *,
    services: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what an operator finds out of an earlier run: {outcome, data, error, evidence}, as far as it says.

    `effects` are what is on record, each {method, effect, request_hash, occurrence, state, provider_key, response}.
    """
    params = {"input": input or {}, "effects": list(effects)}
    found: dict[str, Any] = _ask(plugin, operation, "reconcile", params, services, context)
    return found


def hook(
    plugin: Plugin, event: str, payload: Mapping[str, Any], *, agent: str = "agent", session: str | None = None
) -> dict[str, Any]:
    """Return what a hook answers: {} of a listener; {payload} or {} of a transform; {allow, reason, payload} of a veto."""
    found = plugin.hooks.get(event)
    if found is None:
        raise MortiseError(f"{plugin.name} has no hook of {event!r}", code="not_found")
    ctx = _context(Outcome(), None, {"event": event, "agent": agent, "session": session}, None, 5000)
    try:
        said: dict[str, Any] = _through_json(found.answer({"payload": _through_json(payload)}, ctx))
        return said
    finally:
        ctx._open = False


def _ask(
    plugin: Plugin,
    operation: str,
    question: str,
    params: dict[str, Any],
    services: Mapping[str, Any] | None,
    context: Mapping[str, Any] | None,
) -> Any:
    op = getattr(_operation(plugin, operation), question)
    if op is None:
        raise MortiseError(f"{plugin.name}/{operation} has no {question}", code="tool_not_exposed")
    ctx = _context(Outcome(), services, context, None, 30000)
    try:
        return _through_json(answer(op, _through_json(params), ctx))
    finally:
        ctx._open = False


def _operation(plugin: Plugin, name: str) -> Operation:
    op = plugin.operations.get(name.rpartition("/")[2])
    if op is None:
        raise MortiseError(f"{plugin.name} has no operation {name!r}", code="not_found")
    return op


def _context(
    outcome: Outcome,
    services: Mapping[str, Any] | None,
    context: Mapping[str, Any] | None,
    paths: Mapping[str, str] | None,
    deadline_ms: int,
) -> Context:
    host = _StandIn(outcome, services or {}, paths or {})
    return Context(host, {"call": "0" * 32, "context": context or {}, "deadline_ms": deadline_ms})


def _through_json(value: Any) -> Any:
    try:
        return loads(pack(f'{{"value":{dumps_result(value)}}}', 4 << 20))["value"]
    except ValueError as exc:
        raise PluginError(f"not JSON: {exc}", code="INVALID_RESULT") from None
