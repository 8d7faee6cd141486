"""Operations as tools of LangChain, and a pending approval as LangGraph's interrupt.

A tool submits its call. Where policy at the host lets it run, the tool returns the result. Where a person has to approve, it
calls `langgraph.types.interrupt` with the ids of the call, and the graph stops. Resuming the graph, with whatever value,
changes nothing at the host: the tool runs again, joins the same call by its key, and interrupts again for as long as the
host waits for the person.
"""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Sequence, Union

from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import StructuredTool, ToolException

from ._client import Client, Outcome, Pending
from ._errors import ApprovalPending, ArgumentsChanged, MortiseError
from ._toolcalls import HostTool, ToolCalls, data_of, digest_of, text_of, told, tools_of


@dataclass(frozen=True)
class _Invocation:
    tool_call_id: str
    scope: str | None
    arguments: Mapping[str, Any]


_invocation: contextvars.ContextVar[_Invocation | None] = contextvars.ContextVar("mortise_invocation", default=None)


class OperationTool(StructuredTool):
    """A tool that knows the id of the tool call that it is invoked for."""

    def invoke(self, input: Union[str, dict[str, Any]], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        token = _invocation.set(_invocation_of(input, config))
        try:
            return super().invoke(input, config, **kwargs)
        finally:
            _invocation.reset(token)

    async def ainvoke(self, input: Union[str, dict[str, Any]], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        token = _invocation.set(_invocation_of(input, config))
        try:
            return await super().ainvoke(input, config, **kwargs)
        finally:
            _invocation.reset(token)


def mortise_tools(
    client: Client,
    *,
    only: Sequence[str] | None = None,
    limit: int = 40,
    scope: str | None = None,
    wait: float = 60.0,
) -> list[StructuredTool]:
    """Offer operations of the host as tools.

    Ids of tool calls are unique in scope; by default that is the graph's thread_id, and without one this list of tools.
    Outside a graph, where nothing can be interrupted, a tool that waits for a person raises ApprovalPending.
    """
    calls = ToolCalls(client, scope, wait)
    return [_tool(calls, tool, fixed=scope is not None) for tool in tools_of(client, only, limit)]


def _tool(calls: ToolCalls, tool: HostTool, fixed: bool) -> StructuredTool:
    def submit(invocation: _Invocation) -> Outcome:
        scope = None if fixed else invocation.scope
        return calls.submit(tool.operation.name, invocation.tool_call_id, invocation.arguments, scope=scope)

    def withdraw(pending: Pending, answer: Any) -> None:
        if isinstance(answer, dict) and "withdraw" in answer:
            calls.client.cancel(pending.call_id, str(answer["withdraw"]))

    def run(**arguments: Any) -> str:
        invocation = _invocation.get() or _invocation_of(arguments, None)
        try:
            while True:
                outcome = submit(invocation)
                if outcome.pending is None:
                    return text_of(data_of(outcome))
                withdraw(outcome.pending, _interrupted(outcome.pending))
        except MortiseError as error:
            raise _raised(error) from error

    async def arun(**arguments: Any) -> str:
        invocation = _invocation.get() or _invocation_of(arguments, None)
        try:
            while True:
                outcome = await asyncio.to_thread(submit, invocation)
                if outcome.pending is None:
                    return text_of(data_of(outcome))
                await asyncio.to_thread(withdraw, outcome.pending, _interrupted(outcome.pending))
        except MortiseError as error:
            raise _raised(error) from error

    return OperationTool.from_function(
        func=run,
        coroutine=arun,
        name=tool.name,
        description=tool.description,
        args_schema=tool.schema,
        infer_schema=False,
        handle_tool_error=True,  # the model reads what the host refused
        metadata={"mortise_operation": tool.operation.name},
    )


def _interrupted(pending: Pending) -> Any:
    """Interrupt the graph. Returns what it was resumed with, once it was."""
    try:
        from langgraph.types import interrupt
    except ImportError:
        raise ApprovalPending(pending) from None
    try:
        return interrupt({"type": "mortise.approval", **pending.to_dict()})
    except (RuntimeError, KeyError) as error:  # there is no graph around this tool, or it has no checkpointer
        raise ApprovalPending(pending) from error


def _raised(error: MortiseError) -> Exception:
    # The program has to see these two: the graph and the host disagree.
    return error if isinstance(error, (ApprovalPending, ArgumentsChanged)) else ToolException(told(error))


def _invocation_of(input: Union[str, Mapping[str, Any]], config: RunnableConfig | None) -> _Invocation:
    configurable: Mapping[str, Any] = ensure_config(config).get("configurable") or {}
    thread = configurable.get("thread_id")
    scope = None if thread is None else f"thread:{thread}"
    if isinstance(input, str):
        raise ToolException("the arguments of this tool are an object")
    if input.get("type") == "tool_call" and isinstance(input.get("args"), dict):
        return _Invocation(str(input.get("id") or _fallback(configurable, input["args"])), scope, dict(input["args"]))
    return _Invocation(_fallback(configurable, input), scope, dict(input))


def _fallback(configurable: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    # Without an id the place in the graph and the arguments stand for one: a node that is resumed asks for the same call.
    place = configurable.get("checkpoint_ns")
    return f"{place}:{digest_of(arguments)}" if place else str(uuid.uuid4())


def resumption(interrupts: Sequence[Any], *, withdraw: str | None = None) -> dict[str, Any]:
    """What to resume a graph with, so that its tools ask the host again: `Command(resume=resumption(interrupts))`.

    With withdraw, a reason, they withdraw their calls, so that they can no longer be approved. Interrupts of others are
    left out, and are answered beside these.
    """
    answer: Any = True if withdraw is None else {"withdraw": withdraw}
    return {found.id: answer for found in interrupts if next(pending_approvals([found]), None) is not None}


def pending_approvals(interrupts: Sequence[Any]) -> Iterator[Pending]:
    """The calls that a graph waits for, of `result["__interrupt__"]` or of the tasks of its state."""
    for found in interrupts:
        value = getattr(found, "value", found)
        if isinstance(value, dict) and value.get("type") == "mortise.approval":
            yield Pending(**{name: text for name, text in value.items() if name != "type"})
