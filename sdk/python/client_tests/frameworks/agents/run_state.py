"""RunState: where a run waits, and what was decided. It can be stored and read again."""

from __future__ import annotations

import json
from typing import Any, Dict, Generic, List, Optional, TypeVar, Union

from .items import ToolApprovalItem

C = TypeVar("C")
A = TypeVar("A")


class RunState(Generic[C, A]):
    def __init__(self, calls: List[Dict[str, str]]) -> None:
        self.calls = calls
        self.interruptions: List[ToolApprovalItem] = []
        self.decisions: Dict[str, Union[bool, str]] = {}
        self.outputs: Dict[str, str] = {}

    def get_interruptions(self) -> List[ToolApprovalItem]:
        return list(self.interruptions)

    def approve(self, approval_item: ToolApprovalItem, always_approve: bool = False) -> None:
        self.decisions[approval_item.raw_item["call_id"]] = True

    def reject(
        self, approval_item: ToolApprovalItem, always_reject: bool = False, *, rejection_message: Optional[str] = None
    ) -> None:
        self.decisions[approval_item.raw_item["call_id"]] = rejection_message or "Tool execution was not approved."

    def to_string(self) -> str:
        return json.dumps([self.calls, [item.raw_item for item in self.interruptions], self.decisions, self.outputs])

    @staticmethod
    def from_string(agent: Any, text: str) -> RunState[Any, Any]:
        calls, waiting, decisions, outputs = json.loads(text)
        state: RunState[Any, Any] = RunState(calls)
        state.interruptions = [ToolApprovalItem(agent=agent, raw_item=item) for item in waiting]
        state.decisions, state.outputs = decisions, outputs
        return state
