from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class ToolApprovalItem:
    agent: Any
    raw_item: Any
