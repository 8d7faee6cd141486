"""One call of a tool: validate_inputs, execute, summarize_for_llm, in this order.

Whatever the tool does on the way, exit and infinite recursion among it, there
is one answer and the session goes on.
"""

from __future__ import annotations

import logging
import os
import sys
from io import StringIO

from mortise._errors import Cancelled, MortiseError, ServiceError
from mortise._session import error_message

from . import workspace
from .answer import (
    INPUT_VALIDATION_FAILED,
    INTERNAL_ERROR,
    LLM_UNAVAILABLE,
    Failure,
    error_text,
    failed,
    is_result,
    member,
    not_a_result,
    refused,
    speaks_of_a_model,
    succeeded,
    summary_of,
    validation_errors,
    with_summary,
)
from .artifacts import Artifacts
from .context import ReadOnlyContext
from .llm import LLM
from .missing import missing
from .plain import NotJSON
from .records import RECORDS
from .reference import Own, ReferenceData, from_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from mortise._context import Context

    from .answer import Answer
    from .tools import Tool, Tools

_own: dict[str, Own] = {}  # the data directories of tools
_pid = os.getpid()


def execute(tools: Tools, tool: Tool, payload: Any, ctx: Context) -> Answer:
    """Run a tool once and return the answer; raises Cancelled when the caller has given up."""
    RECORDS.begin(ctx)
    try:
        return _run(tools, tool, payload, ctx)
    except Failure as exc:
        return failed(exc.code, exc.message, exc.details)
    finally:
        RECORDS.end()


def alone() -> None:
    """End a child that a tool forked and that came back as if it were us: one call has one answer."""
    if os.getpid() != _pid:
        os._exit(0)


def _run(tools: Tools, tool: Tool, payload: Any, ctx: Context) -> Answer:
    opened = _open(tool, ctx)
    place = workspace.enter(ctx.scratch, opened.get("config") or {})
    _lend_reference_data(ctx)
    files = Artifacts(tool, ctx, opened.get("artifacts") or [], place, str(opened.get("session_id") or ""))
    guard = _Guard(tools.root, tool)
    if not isinstance(payload, dict):
        raise Failure(INPUT_VALIDATION_FAILED, f"{tool.name}: the input must be an object", {"errors": ["not an object"]})
    files.check(payload)

    instance = guard("loading", lambda: tools.instance(tool))
    files.complete(payload)
    errors = guard("validate_inputs", lambda: _validate(instance, payload))
    if errors is not None:
        message = f"{tool.name}: {'; '.join(map(error_text, errors[:5]))}"
        raise Failure(INPUT_VALIDATION_FAILED, message, {"errors": errors})
    unmet = tool.needs_model and opened.get("llm_enabled") is not True
    if unmet and opened.get("llm_required") == "refuse":
        message = f"{tool.name} asks for a language model and none is connected: configure one, see `mortise models`"
        raise Failure(LLM_UNAVAILABLE, f"{message}; with models.required: run in mortise.yaml it runs without")
    files.exporting(payload)
    try:
        return _carried_out(instance, payload, _context(tool, ctx, opened, files), files, guard, unmet)
    except Failure as exc:
        files.settle(logging.getLogger(f"eventmill.plugin.{tool.name}"), strict=False)
        if exc.details.pop("wants_model", False) and unmet:
            exc.message += "; it asks for a language model and none is connected: configure one, see `mortise models`"
            exc.code = LLM_UNAVAILABLE
        raise


def _carried_out(instance: Any, payload: Any, context: ReadOnlyContext, files: Artifacts, guard: _Guard, unmet: bool) -> Answer:
    """Execute the tool and return the answer; unmet says that it asks for a model and has none."""
    tool = files.tool
    result = guard("execute", lambda: _checked(instance.execute(payload, context)))
    ok = guard("result", lambda: bool(member(result, "ok")))
    outputs = guard("result", lambda: member(result, "output_artifacts"))
    guard("register_artifact", lambda: files.settle(context.logger, strict=ok))
    if not ok:
        asked = unmet and context.asked_for_model
        failure: Answer = guard("result", lambda: refused(tool.name, result, outputs, unmet, asked))
        return failure
    guard("output_artifacts", lambda: files.take(outputs, context.logger))
    answer: Answer = guard("result", lambda: _spelled(tool, result, outputs))
    if not files.registered and context.session_id:
        answer.saved = _save(files, result, answer, context.logger)
    files.export(context.logger)
    return with_summary(answer, _summary(instance, result, tool, context.logger))


def _open(tool: Tool, ctx: Context) -> dict[str, Any]:
    try:
        opened = ctx.service("session.open", {})
    except ServiceError as exc:
        message = f"{tool.name}: the host opened no session: {error_message(exc)}"
        raise Failure(INTERNAL_ERROR, message, {"stage": "session.open", "code": exc.code}) from None
    return opened if isinstance(opened, dict) else {}


def _context(tool: Tool, ctx: Context, opened: dict[str, Any], files: Artifacts) -> ReadOnlyContext:
    logger = logging.getLogger(f"eventmill.plugin.{tool.name}")
    if tool.name not in _own:
        _own[tool.name] = Own(tool.directory)
    limits = dict(opened.get("limits") or {})
    if ctx.deadline_ms:
        limits.setdefault("timeout", ctx.deadline_ms / 1000)
    enabled = opened.get("llm_enabled") is True
    context = ReadOnlyContext(
        session_id=str(opened.get("session_id") or ""),
        selected_pillar=str(opened.get("pillar") or ""),
        artifacts=list(files.refs),
        config=dict(opened.get("config") or {}),
        logger=logger,
        reference_data=ReferenceData(_own[tool.name], ctx, logger),
        llm_enabled=enabled,
        llm_query=LLM(ctx, files) if enabled else None,
        register_artifact=files.register_artifact,
        limits=limits,
    )
    context.__dict__["_report"] = ctx.progress  # no field: tools compare and copy the contract's own
    return context


def _lend_reference_data(ctx: Context) -> None:
    """Let the framework's own modules ask for reference data while this call runs."""
    from framework import _host

    _host.reference = lambda key: from_host(ctx, key, None) if ctx._open else None


def _validate(instance: Any, payload: dict[str, Any]) -> list[Any] | None:
    validate = getattr(instance, "validate_inputs", None)
    return None if validate is None else validation_errors(validate(payload))


def _checked(result: Any) -> Any:
    if not is_result(result):
        if hasattr(result, "close"):  # a coroutine warns if it is never awaited
            result.close()
        raise Failure(INTERNAL_ERROR, not_a_result(result), {"stage": "execute"})
    return result


def _spelled(tool: Tool, result: Any, outputs: Any) -> Answer:
    try:
        return succeeded(result, outputs)
    except NotJSON as exc:
        raise Failure(INTERNAL_ERROR, f"{tool.name}: the result is not JSON: {exc}", {"stage": "result"}) from None


def _save(files: Artifacts, result: Any, answer: Answer, logger: logging.Logger) -> str:
    try:
        return files.save(member(result, "result"), answer.data)
    except Cancelled:
        raise
    except Exception as exc:
        logger.warning("the result was not saved as an artifact: %s", error_message(exc))
        return ""


def _summary(instance: Any, result: Any, tool: Tool, logger: logging.Logger) -> str:
    try:
        return summary_of(instance.summarize_for_llm(result), tool.name)
    except Cancelled:
        raise
    except BaseException as exc:
        logger.warning("summarize_for_llm: %s: %s", type(exc).__name__, error_message(exc))
        return summary_of(None, tool.name)


def _printed(exc: BaseException, root: str) -> str:
    """Return what Python, or the hook that a tool put in its place, prints of an exception from the package's own first line on."""
    printed, before = StringIO(), sys.stderr
    try:
        trace = exc.__traceback__
        while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(root + os.sep):
            trace = trace.tb_next
        exc.__traceback__ = trace or exc.__traceback__  # a hook prints what the exception has
        sys.stderr = printed
        sys.excepthook(type(exc), exc, exc.__traceback__)
    except BaseException:
        pass  # the hook is the tool's, or the exception will not be printed
    finally:
        sys.stderr = before
    return printed.getvalue()


def _wants_model(exc: BaseException | None) -> bool:
    """Report whether an exception came of asking None for an answer, as a tool does that takes a model for granted."""
    seen = 0
    while exc is not None and seen < 20:
        if isinstance(exc, AttributeError) and exc.obj is None and isinstance(exc.name, str) and hasattr(LLM, exc.name):
            return True
        exc, seen = exc.__cause__ or exc.__context__, seen + 1
    return False


class _Guard:
    """Runs code of a tool and turns whatever comes out of it into a failure."""

    def __init__(self, root: str, tool: Tool) -> None:
        self._root = root
        self._tool = tool

    def __call__(self, stage: str, action: Callable[[], Any]) -> Any:
        try:
            value, fault = action(), None
        except (Failure, Cancelled):
            raise
        except BaseException as exc:
            value, fault = None, exc
        alone()
        if fault is not None:
            raise self._failure(stage, fault) from None
        return value

    def _failure(self, stage: str, exc: BaseException) -> Failure:
        known = missing(exc, self._tool.name, self._tool.directory)
        if known is not None:
            return known
        name = type(exc).__name__
        text = error_message(exc)
        details = {"stage": stage, "exception": name, "at": self._place(exc)}
        if isinstance(exc, MortiseError):
            details["code"] = exc.code
        if stage == "execute" and (_wants_model(exc) or speaks_of_a_model(text)):
            details["wants_model"] = True
        RECORDS.tell(_printed(exc, self._root))
        message = text if text == name else f"{name}: {text}"
        return Failure(INTERNAL_ERROR, f"{self._tool.name}: {stage}: {message}", details)

    def _place(self, exc: BaseException) -> str:
        """Return the last line of the package's own that the exception came through."""
        found = ""
        trace = exc.__traceback__
        while trace is not None:
            path = trace.tb_frame.f_code.co_filename
            if path.startswith(self._root + os.sep):
                found = f"{path[len(self._root) + 1 :]}:{trace.tb_lineno}"
            trace = trace.tb_next
        return found
