"""A stand-in for openai-agents 0.24: what the adapter uses of its published interface, and a runner of tool calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, Generic, List, TypeVar, Union

from .items import ToolApprovalItem

T = TypeVar("T")


class RunContextWrapper(Generic[T]):
    def __init__(self, context: T) -> None:
        self.context = context


from .run_state import RunState  # noqa: E402
from .tool_context import ToolContext  # noqa: E402


class UserError(Exception):
    """What the runner raises for a tool that raised."""


@dataclass
class FunctionTool:
    name: str
    description: str
    params_json_schema: Dict[str, Any]
    on_invoke_tool: Callable[[ToolContext[Any], str], Awaitable[Any]]
    strict_json_schema: bool = True
    needs_approval: Union[bool, Callable[[RunContextWrapper[Any], Dict[str, Any], str], Awaitable[bool]]] = False


@dataclass
class Agent:
    """An agent whose model asks for these tool calls, and then says what came of them."""

    name: str
    tools: List[FunctionTool]
    calls: List[Dict[str, str]]


@dataclass
class RunResult:
    state: RunState[Any, Any]

    @property
    def interruptions(self) -> List[ToolApprovalItem]:
        return self.state.get_interruptions()

    @property
    def final_output(self) -> str:
        return "" if self.interruptions else "\n".join(self.state.outputs.values())

    def to_state(self) -> RunState[Any, Any]:
        return self.state


class Runner:
    """Runs tool calls as the runner does: it asks whether each needs approval, unless that was decided in the state."""

    @staticmethod
    async def run(starting_agent: Agent, input: Union[str, RunState[Any, Any]]) -> RunResult:
        state: RunState[Any, Any] = input if isinstance(input, RunState) else RunState(starting_agent.calls)
        state.interruptions = []
        named = {tool.name: tool for tool in starting_agent.tools}
        for call in state.calls:
            tool, call_id, decision = named[call["name"]], call["call_id"], state.decisions.get(call["call_id"])
            if call_id in state.outputs:
                continue
            if isinstance(decision, str):
                state.outputs[call_id] = decision
                continue
            if decision is None and callable(tool.needs_approval):
                try:
                    arguments = json.loads(call["arguments"])
                except ValueError:
                    arguments = {}
                if await tool.needs_approval(RunContextWrapper(None), arguments, call_id):
                    state.interruptions.append(ToolApprovalItem(agent=None, raw_item=call))
                    continue
            try:
                state.outputs[call_id] = await tool.on_invoke_tool(ToolContext(None, call["name"], call_id), call["arguments"])
            except Exception as error:
                raise UserError(f"Error running tool {tool.name}: {error}") from error
        return RunResult(state)
