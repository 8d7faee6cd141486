"""What a plugin returned, and what is answered for it.

Plugins bring result classes of their own, so members are taken by name from
whatever has them: an object, or a dict. A dict without a status is the data.
`returned` tells the host what it was: a `dict`, one without a status (`bare`),
or `none`. Those are passed on as they are, without a look at the output schema.
"""

from __future__ import annotations

from eventmill._shim.answer import clean
from eventmill._shim.plain import NotJSON, plain, text_of
from mortise._context import cut
from mortise._wire import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXECUTE_ERROR = "plugin_execute_error"

MAX_MESSAGE = 2048
MAX_DETAILS = 64 << 10
MAX_ITEMS = 1000  # of diagnostics, skips and citations, each
MAX_LINE = 2000  # of a diagnostic

_SUCCESS = ("success", "ok", "succeeded")
_REASONS = ("too_large", "ext_filtered", "unsupported_format", "empty_extraction", "auth", "network", "other")
_STATUSES = (*_SUCCESS, "error", "failed", "timeout", "pending_approval")


class Answer:
    """The result of an execute, its members spelled already."""

    def __init__(self, members: dict[str, str]) -> None:
        self.members = members

    def text(self) -> str:
        return "{" + ",".join(f'"{name}":{text}' for name, text in self.members.items()) + "}"


def failed(
    plugin_code: str,
    message: object,
    details: Any = None,
    code: str = "plugin_error",
    retryable: bool = False,
    retry_after_ms: int = 0,
    beside: dict[str, str] | None = None,
) -> Answer:
    """Return a failure; beside it are further members, spelled."""
    told = details if isinstance(details, dict) else {} if details is None else {"details": details}
    error = '{"code":%s,"plugin_code":%s,"message":%s,"details":%s,"retryable":%s,"retry_after_ms":%d}' % (
        dumps(code),
        dumps(clean(cut(plugin_code, 128))),
        dumps(clean(cut(message, MAX_MESSAGE))),
        _details(told),
        "true" if retryable else "false",
        retry_after_ms,
    )
    return Answer({"status": '"failed"', "error": error, **(beside or {})})


def is_result(value: Any) -> bool:
    """Report whether something is a result: it has one of the statuses."""
    status = member(value, "status")
    return isinstance(status, str) and _word(status) in _STATUSES


def member(result: Any, name: str) -> Any:
    """Return a member of a result, None where it has none."""
    if isinstance(result, dict):
        return result.get(name)
    return None if isinstance(result, type) else getattr(result, name, None)


def answer_of(result: Any, data: str = "data", verbatim: bool = False) -> Answer:
    """Return the answer for a result; `data` is the member that holds it. Raises NotJSON.

    verbatim says that a dict is passed on without a look at the output schema, as what execute returns is.
    """
    if result is None and verbatim:
        return Answer({"status": '"succeeded"', "data": "null", "returned": '"none"'})
    is_dict = isinstance(result, dict)
    if not is_dict and callable(getattr(result, "model_dump", None)) and not isinstance(result, type):
        result = result.model_dump()
    if not is_result(result):
        if isinstance(result, dict):
            returned = {"returned": '"bare"'} if is_dict and verbatim else {}
            return Answer({"status": '"succeeded"', "data": text_of(result, "/data"), **returned})
        named = "None" if result is None else f"a value of type {type(result).__name__}"
        return failed(EXECUTE_ERROR, f"execute returned {named} in place of a result with a status")
    status = _word(member(result, "status"))
    beside = _beside(result)
    if isinstance(result, dict) and verbatim:
        try:
            beside["members"] = text_of({**result, "data": None} if "data" in result else result, "/")
        except NotJSON:
            pass  # what is JSON of it stands beside
    if is_dict and verbatim:
        beside["returned"] = '"dict"'
    if status in _SUCCESS:
        if member(result, "action_id") is not None:
            beside["details"] = dumps({"action_id": clean(cut(member(result, "action_id"), 512))})
        return Answer({"status": '"succeeded"', "data": text_of(member(result, data), f"/{data}"), **beside})
    if status == "pending_approval":
        details = {"action_id": member(result, "action_id"), "preview": member(result, "preview")}
        message = "the action asks for an approval although it has one: it should act where context has approved"
        return failed("pending_approval", message, details, beside=beside)
    error = member(result, "error")
    partial = member(result, data)
    if partial is not None:
        try:
            beside["data"] = text_of(partial, f"/{data}")
        except NotJSON:
            pass  # why it failed matters more than what it had by then
    if verbatim and isinstance(error, dict) and "members" not in beside and not error.keys() <= {"code", "message", "details"}:
        try:
            beside["members"] = text_of({"error": error}, "/")
        except NotJSON:
            pass  # what is JSON of it is in the details
    code, message, details = _error(error)
    message = message or _said(member(result, "diagnostics"))
    if status == "timeout":
        return failed("timeout", message or "the plugin reported a timeout", details, code="timeout", beside=beside)
    return failed(code or EXECUTE_ERROR, message or "the plugin failed and gave no reason", details, beside=beside)


def _said(diagnostics: Any) -> str:
    """Return the reason in the diagnostics of a result that has none in its error."""
    lines = [diagnostics] if isinstance(diagnostics, str) else diagnostics if isinstance(diagnostics, (list, tuple)) else []
    return "; ".join(str(line) for line in lines[:5] if line)


def _word(status: str) -> str:
    """Return a status as a plain word; that of an enum of text is its value."""
    value = getattr(status, "value", status)
    return str.__str__(value if isinstance(value, str) else status)


def _error(error: Any) -> tuple[str, str, Any]:
    """Return code, message and details of an error, which may be an object, a dict or a text."""
    if error is None or isinstance(error, str):
        return "", error or "", None
    code, message, details = (member(error, name) for name in ("code", "message", "details"))
    if isinstance(error, dict):
        more = {name: value for name, value in error.items() if name not in ("code", "message", "details")}
        if more:
            details = {**(details if isinstance(details, dict) else {} if details is None else {"details": details}), **more}
    if code is None and message is None and details is None:
        message = error
    return "" if code is None else str(getattr(code, "value", code)), "" if message is None else str(message), details


def _beside(result: Any) -> dict[str, str]:
    """Return what a result has beside data and error; what is no JSON is left out, and a diagnostic says so."""
    members: dict[str, str] = {}
    notes: list[str] = []
    metrics = _metrics(member(result, "cost"))
    if metrics:
        members["metrics"] = dumps(metrics)
    for name in ("skips", "citations"):
        listed = member(result, name)
        if isinstance(listed, (list, tuple)) and listed:
            try:
                opened = [_open(one) for one in listed[:MAX_ITEMS]]
                members[name] = text_of([_skip(one) for one in opened] if name == "skips" else opened, f"/{name}")
            except NotJSON as exc:
                notes.append(f"{name} are left out: {exc}")
            if len(listed) > MAX_ITEMS:
                notes.append(f"{name}: {len(listed)}, of which the first {MAX_ITEMS} are shown")
    cursor = member(result, "next_cursor")
    if cursor is not None:
        try:
            members["next_cursor"] = text_of(cursor, "/next_cursor")
        except NotJSON as exc:
            notes.append(f"next_cursor is left out: {exc}")
    said = member(result, "diagnostics")
    lines = [said] if isinstance(said, str) else list(said) if isinstance(said, (list, tuple)) else []
    if lines or notes:
        members["diagnostics"] = dumps([clean(cut(line, MAX_LINE)) for line in [*lines[:MAX_ITEMS], *notes]])
    return members


def _open(item: Any) -> Any:
    """Return what a skip or citation of a class of the plugin's says of itself."""
    if callable(getattr(item, "to_dict", None)):
        return item.to_dict()
    if isinstance(item, dict) or hasattr(type(item), "__dataclass_fields__") or not hasattr(item, "__dict__"):
        return item
    return vars(item)


def _skip(item: Any) -> Any:
    """Return a skip with a reason of the contract's. One of another name is `other`, and its details tell which."""
    if not isinstance(item, dict) or item.get("reason") is None:
        return item
    reason = item["reason"]
    reason = str(getattr(reason, "value", reason))
    if reason in _REASONS:
        return {**item, "reason": reason}
    details = item.get("details")
    more = details if isinstance(details, dict) else {} if details is None else {"details": details}
    return {**item, "reason": "other", "details": {**more, "reason": cut(reason, MAX_LINE)}}


def _metrics(cost: Any) -> dict[str, Any]:
    """Return the figures of a cost: {tokens, api_calls} and whatever else it counts."""
    if cost is None:
        return {}
    if not isinstance(cost, dict):
        cost = {name: member(cost, name) for name in ("tokens", "api_calls")}
    return {str(name)[:64]: plain(value, "/cost") for name, value in list(cost.items())[:32] if _is_figure(value)}


def _is_figure(value: Any) -> bool:
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def _details(details: Any) -> str:
    try:
        text = text_of(details, "/details")
    except NotJSON as exc:
        return dumps({"not_json": str(exc)})
    return text if len(text) <= MAX_DETAILS else dumps({"cut": text[:8192], "bytes": len(text)})
