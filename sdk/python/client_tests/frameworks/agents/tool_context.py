from __future__ import annotations

from typing import Any, TypeVar

from . import RunContextWrapper

T = TypeVar("T")


class ToolContext(RunContextWrapper[T]):
    def __init__(self, context: T, tool_name: str, tool_call_id: str) -> None:
        super().__init__(context)
        self.tool_name = tool_name
        self.tool_call_id = tool_call_id
