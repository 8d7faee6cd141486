"""A graph with a checkpointer whose one node runs tool calls. A node that is resumed runs again from its start."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Sequence, Union

from langchain_core.tools import StructuredTool

from .types import Command, GraphInterrupt, Scratchpad, _NOTHING

Input = Union[Dict[str, Any], Command]


class ToolGraph:
    """The checkpoint is the state: the tool calls, which a program may edit, and what each was resumed with."""

    def __init__(self, tools: Sequence[StructuredTool]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.tool_calls: List[Dict[str, Any]] = []
        self.tasks: Dict[str, Scratchpad] = {}

    def invoke(self, input: Input, config: Dict[str, Any]) -> Dict[str, Any]:
        return asyncio.run(self._run(input, config, threads=True))

    async def ainvoke(self, input: Input, config: Dict[str, Any]) -> Dict[str, Any]:
        return await self._run(input, config, threads=False)

    async def _run(self, input: Input, config: Dict[str, Any], threads: bool) -> Dict[str, Any]:
        if isinstance(input, dict):
            self.tool_calls = [{"type": "tool_call", **call} for call in input["messages"]]
            self.tasks = {call["id"]: Scratchpad() for call in self.tool_calls}
        elif not isinstance(input.resume, dict) or not set(input.resume) <= {"tools:" + id for id in self.tasks}:
            if sum(task.stopped for task in self.tasks.values()) > 1:
                raise RuntimeError("When there are multiple pending interrupts, you must specify the interrupt id when resuming.")
            input = Command({"tools:" + id: input.resume for id, task in self.tasks.items() if task.stopped})
        elif not input.resume:
            raise ValueError("Received empty Command input")
        messages, interrupts = [], []
        for call in self.tool_calls:
            task = self.tasks[call["id"]]
            place = "tools:" + call["id"]
            task.count, task.stopped, task.new = 0, False, input.resume.get(place, _NOTHING) if isinstance(input, Command) else _NOTHING
            inner = {**config, "configurable": {**config["configurable"], "__pregel_scratchpad": task, "checkpoint_ns": place}}
            tool = self.tools[call["name"]]
            try:
                messages.append(await (asyncio.to_thread(tool.invoke, call, inner) if threads else tool.ainvoke(call, inner)))
            except GraphInterrupt as stopped:
                task.stopped = True
                interrupts.append(stopped.args[0])
        return {"messages": messages, **({"__interrupt__": interrupts} if interrupts else {})}
