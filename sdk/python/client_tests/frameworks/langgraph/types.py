"""interrupt: the first time it stops the graph; when the node runs again it returns what the graph was resumed with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, List

from langchain_core.runnables import current

_NOTHING = object()


@dataclass
class Interrupt:
    value: Any
    id: str


class GraphInterrupt(Exception):
    """Passes through tools and nodes up to the graph."""


@dataclass
class Command:
    resume: Any


@dataclass
class Scratchpad:
    """What a task was resumed with so far, by position."""

    resumed: List[Any] = field(default_factory=list)
    new: Any = _NOTHING
    count: int = 0
    stopped: bool = False


def interrupt(value: Any) -> Any:
    config = current.get()
    if config is None:
        raise RuntimeError("Called get_config outside of a runnable context")
    scratchpad: Scratchpad = config["configurable"]["__pregel_scratchpad"]
    position = scratchpad.count
    scratchpad.count += 1
    if position < len(scratchpad.resumed):
        return scratchpad.resumed[position]
    if scratchpad.new is not _NOTHING:
        scratchpad.resumed.append(scratchpad.new)
        scratchpad.new = _NOTHING
        return scratchpad.resumed[position]
    raise GraphInterrupt(Interrupt(value, config["configurable"]["checkpoint_ns"]))
