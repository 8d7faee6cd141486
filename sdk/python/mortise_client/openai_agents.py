"""Operations as tools of OpenAI Agents, and a pending approval as its interruption.

A tool's call is submitted when the runner asks whether it needs approval. Where policy at the host lets it run, it has run
then, and the tool gets its result under the same key. Where a person has to approve, the run ends with an interruption.
Approving that in the run's state changes nothing at the host: resolve reads there what was decided.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from agents import FunctionTool, RunContextWrapper
from agents.items import ToolApprovalItem
from agents.run_state import RunState
from agents.tool_context import ToolContext

from ._client import Client, Pending, failure_of
from ._errors import ApprovalPending, ArgumentsChanged, MortiseError
from ._toolcalls import HostTool, ToolCalls, data_of, is_answer, is_refusal, text_of, told, tools_of


@dataclass(frozen=True)
class Waiting:
    """A tool call that waits for a person."""

    tool_call_id: str
    pending: Pending


class MortiseTools:
    """Operations of the host as tools. Make one for each conversation, with its id as the scope."""

    def __init__(
        self,
        client: Client,
        *,
        only: Sequence[str] | None = None,
        limit: int = 40,
        scope: str | None = None,
        wait: float = 60.0,
    ) -> None:
        self._calls = ToolCalls(client, scope, wait)
        offered = tools_of(client, only, limit)
        self._operations = {tool.name: tool.operation.name for tool in offered}
        self.tools: list[FunctionTool] = [self._tool(tool) for tool in offered]

    async def resolve(self, state: RunState[Any, Any]) -> list[Waiting]:
        """Approve and reject the interruptions about which the host has decided; return those that still wait."""
        waiting: list[Waiting] = []
        await asyncio.to_thread(self._each, state, lambda item, found: waiting.append(found))
        return waiting

    async def withdraw(self, state: RunState[Any, Any], reason: str) -> None:
        """Withdraw what waits, so that it can no longer be approved, and reject the interruptions."""

        def cancel(item: ToolApprovalItem, found: Waiting) -> None:
            self._calls.client.cancel(found.pending.call_id, reason)
            state.reject(item, rejection_message=reason)

        await asyncio.to_thread(self._each, state, cancel)

    def _tool(self, tool: HostTool) -> FunctionTool:
        operation = tool.operation.name

        # The runner passes {} for arguments that are no JSON. Where {} could have effects, it interrupts, and resolve, which
        # knows the text of the arguments, makes the call.
        unsure = bool(tool.operation.effects) and not tool.schema.get("required")

        async def needs_approval(context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
            if unsure and not arguments:
                return True
            try:
                outcome = await asyncio.to_thread(self._calls.submit, operation, call_id, arguments)
            except ArgumentsChanged:
                raise
            except MortiseError:
                return False  # the tool meets the same refusal, and the model reads it
            return outcome.pending is not None

        async def invoke(context: ToolContext[Any], text: str) -> str:
            try:
                arguments = _arguments(text)
                return text_of(data_of(await asyncio.to_thread(self._calls.submit, operation, context.tool_call_id, arguments)))
            except (ApprovalPending, ArgumentsChanged):
                raise  # the program has to see these: the run and the host disagree
            except MortiseError as error:
                return told(error)

        return FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=tool.schema,
            on_invoke_tool=invoke,
            strict_json_schema=False,
            needs_approval=needs_approval,
        )

    def _each(self, state: RunState[Any, Any], waits: Callable[[ToolApprovalItem, Waiting], None]) -> None:
        for item in state.get_interruptions():
            name, call_id, text = (_of(item.raw_item, member) for member in ("name", "call_id", "arguments"))
            operation = self._operations.get(name)
            if operation is None or not call_id:
                continue
            try:
                arguments = _arguments(text)
            except MortiseError as error:
                state.reject(item, rejection_message=told(error))  # the host knows no such call
                continue
            try:
                outcome = self._calls.submit(operation, call_id, arguments, wait=0)
                if outcome.pending is not None:
                    waits(item, Waiting(call_id, outcome.pending))
                    continue
                refused = failure_of(outcome)
            except MortiseError as error:
                if not is_answer(error):
                    raise
                refused = error
            if refused is not None and is_refusal(refused):
                state.reject(item, rejection_message=told(refused))
            else:
                state.approve(item)


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise MortiseError("invalid_input", f"the arguments are no JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise MortiseError("invalid_input", "the arguments are no object")
    return arguments


def _of(item: Any, member: str) -> str:
    value = item.get(member) if isinstance(item, dict) else getattr(item, member, None)
    return value if isinstance(value, str) else ""
