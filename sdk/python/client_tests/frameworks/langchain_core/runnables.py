"""RunnableConfig, and the configuration that is around a runnable."""

from __future__ import annotations

import contextvars
from typing import Any, Dict, Optional

RunnableConfig = Dict[str, Any]

current: contextvars.ContextVar[Optional[RunnableConfig]] = contextvars.ContextVar("config", default=None)


def ensure_config(config: RunnableConfig | None = None) -> RunnableConfig:
    """The configuration that is around, with the one that is given over it."""
    merged: RunnableConfig = {"tags": [], "metadata": {}, "configurable": {}}
    for found in (current.get(), config):
        merged.update({name: value for name, value in (found or {}).items() if value is not None})
    return merged
