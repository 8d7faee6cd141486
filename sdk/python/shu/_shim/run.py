"""One call of a plugin: execute, perform_action, or what an action would do.

Whatever the plugin does on the way there is one answer, and the process goes on.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys

from eventmill._shim.plain import NotJSON, plain
from mortise._errors import Cancelled, MortiseError, ServiceError
from mortise._session import error_message
from shu_plugin_sdk.errors import HttpRequestFailed

from . import guard
from .answer import EXECUTE_ERROR, Answer, answer_of, failed, is_result, member
from .call import Call, told
from .describe import ONE, actions, ops, schema_of, schema_told
from .host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .load import Package


async def execute(package: Package, name: str, payload: Any, call: Call) -> Answer:
    """Run an operation, or perform an action; raises Cancelled when the caller has given up."""
    try:
        if not isinstance(payload, dict):
            return failed("", f"{name}: the input must be an object", code="invalid_input")
        instance = package.instance()
        host = Host(call, package.about.capabilities)
        if await _is_action(instance, name):
            context = told(call.ctx, approved=True)
            result = await _call(instance.perform_action, name, dict(payload), context, host)
            return answer_of(result, "result" if member(result, "status") == "ok" else "data")
        params = call.params = await _params(instance, name, payload)
        result = await _call(instance.execute, params, await _told(package, params, call), host)
        if hasattr(result, "__aiter__"):
            result = await _streamed(result, call)
        return answer_of(result, verbatim=True)
    except NotJSON as exc:
        return failed(EXECUTE_ERROR, f"{name}: the result is not JSON: {exc}")
    except BaseException as exc:
        return failure(package, name, exc, call)


async def preview(package: Package, name: str, payload: Any, call: Call) -> Any:
    """Return what an action would do, as far as it says before it is approved. No service changes anything meanwhile."""
    instance = package.instance()
    if not await _is_action(instance, name):
        return None
    arguments = dict(payload) if isinstance(payload, dict) else {}
    shown: Any = {"action": name, "params": arguments}
    try:
        host, context = Host(call, package.about.capabilities), told(call.ctx, approved=False, preview=True)
        result = await _call(instance.perform_action, name, dict(arguments), context, host)
    except ServiceError as exc:
        if exc.code not in ("effect_undeclared", "service_denied"):
            raise
        return {**shown, "stopped_at": exc.message}  # before its first effect
    said = member(result, "preview")
    return plain({**shown, "preview": said} if said is not None else shown, "/preview")


async def _is_action(instance: Any, name: str) -> bool:
    if not callable(getattr(instance, "perform_action", None)) or name not in await actions(instance):
        return False
    return name not in ops(await schema_told(instance))


async def _params(instance: Any, name: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the input as the plugin gets it: with its op, without the host's, and without what is null where there is a schema."""
    stands = name == ONE and name not in ops(await schema_told(instance))  # for the op that the input names
    called = payload.get("op") if stands else name
    schema = await schema_of(instance, called) if isinstance(called, str) else await schema_told(instance)
    params = {key: value for key, value in payload.items() if (value is not None or schema is None) and key != "__host"}
    if stands:
        return params
    params["op"] = name
    return params


async def _told(package: Package, params: dict[str, Any], call: Call) -> Any:
    """Return the context of execute, with how far the source was read for the knowledge base that the input names."""
    granted = package.about.capabilities
    if "cursor" not in granted and "kb" not in granted:
        return told(call.ctx)
    watermark, kb = None, params.get("kb_id") or params.get("knowledge_base_id")
    if isinstance(kb, str):
        try:
            found = await call.ask("cursor.get", {"kb_id": kb})
            watermark = found.get("value") if found.get("found") else None
        except ServiceError:
            pass  # it is no knowledge base's name; whatever uses it says so
    return told(call.ctx, watermark=watermark)


async def _call(method: Any, *args: Any) -> Any:
    """Call a method of the plugin's. One that is no coroutine has a thread, so that it may block, and run a loop."""
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        result = method(*args)
    else:
        result = await _to_the_end(asyncio.get_running_loop().run_in_executor(None, method, *args))
    return await result if inspect.isawaitable(result) else result


async def _to_the_end(work: asyncio.Future[Any]) -> Any:
    """Wait for a thread, which cannot be cancelled, whatever happens meanwhile."""
    cancelled = False
    while True:
        try:
            result = await asyncio.shield(work)
            break
        except asyncio.CancelledError:
            if work.done():
                raise
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return result


async def _streamed(events: Any, call: Call) -> Any:
    """Pass on what an iterator yields; return its result, or a success without data."""
    result: Any = None
    try:
        async for event in events:
            kind = _kind(event)
            if kind == "progress":
                _progress(event, call)
            elif kind in ("result", "final"):
                inner = member(event, "result")
                inner = member(event, "data") if inner is None else inner
                result = inner if is_result(inner) else {"status": "success", "data": inner}
            elif kind == "result itself":
                result = event
            else:
                call.ctx.emit(plain(_content(event), "/content"))
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
    return {"status": "success", "data": None} if result is None else result


def _kind(event: Any) -> str:
    for name in ("type", "kind", "event"):
        kind = member(event, name)
        if isinstance(kind, str):
            return str(getattr(kind, "value", kind))
    return "result itself" if is_result(event) else "content"


def _content(event: Any) -> Any:
    if isinstance(event, dict):
        for name in ("data", "content", "delta", "text"):
            if name in event:
                return event[name]
    return event


def _progress(event: Any, call: Call) -> None:
    data = member(event, "data")
    said = data if isinstance(data, dict) else event if isinstance(event, dict) else vars(event)
    message, unit = said.get("message") or said.get("text"), said.get("unit")
    if message is None and isinstance(data, str):
        message = data
    done, total = said.get("done", said.get("current")), said.get("total")
    if done is None and _is_number(said.get("percent")):
        done, total, unit = said["percent"], 100, "%"
    call.ctx.progress(
        None if message is None else str(message),
        done if _is_number(done) else None,
        total if _is_number(total) else None,
        None if unit is None else str(unit),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def failure(package: Package, name: str, exc: BaseException, call: Call | None) -> Answer:
    """Return the answer for an exception; raises Cancelled when it is that the caller has given up."""
    if call is not None and call.ctx._cancelled and isinstance(exc, (asyncio.CancelledError, Cancelled)):
        raise Cancelled() from None
    if isinstance(exc, HttpRequestFailed) or _looks_like_one(exc):
        return _of_provider(exc)
    details: dict[str, Any] = {"exception": type(exc).__name__}
    at = place(package.root, exc)
    if at:
        details["at"] = at
    if isinstance(exc, MortiseError):
        details["code"] = exc.code
    text = error_message(exc)
    _trace(exc)
    if isinstance(exc, ModuleNotFoundError) and exc.name and not exc.name.startswith("plugins") and not guard.rule(exc.name):
        message = f"{name}: the package {exc.name.partition('.')[0]} is not there; put it in the plugin's vendor directory"
        return failed(EXECUTE_ERROR, message, {**details, "plugin_code": EXECUTE_ERROR}, code="dependency_missing")
    return failed(EXECUTE_ERROR, text if text == type(exc).__name__ else f"{type(exc).__name__}: {text}", details)


def _looks_like_one(exc: BaseException) -> bool:
    """Report whether a plugin brought an HttpRequestFailed of its own."""
    return type(exc).__name__ == "HttpRequestFailed" and isinstance(getattr(exc, "status_code", None), int)


def _of_provider(exc: Any) -> Answer:
    known = HttpRequestFailed(exc.status_code, getattr(exc, "url", ""), getattr(exc, "body", None), getattr(exc, "headers", None))
    words = known.provider_message or str(exc)
    after = known.retry_after_seconds
    details = {
        "status_code": known.status_code,
        "url": known.url,
        "provider_message": known.provider_message,
        "is_retryable": known.is_retryable,
    }
    for name, value in (("provider_error_code", known.provider_error_code), ("retry_after_seconds", after)):
        if value is not None:
            details[name] = value
    wait = int(min(max(after or 0, 0), 86400) * 1000)
    message = f"Provider HTTP error ({known.status_code}): {words}"
    return failed(known.error_category, message, details, retryable=known.is_retryable, retry_after_ms=wait)


def _trace(exc: BaseException) -> None:
    try:
        sys.excepthook(type(exc), exc, exc.__traceback__)
    except BaseException:
        pass  # the hook is the plugin's, or the exception will not be printed


def place(root: str, exc: BaseException) -> str:
    """Return the last line of the package's own that the exception came through."""
    found, trace = "", exc.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.startswith(root + os.sep):
            found = f"{path[len(root) + 1 :]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
