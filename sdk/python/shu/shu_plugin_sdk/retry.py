"""Retries with exponential backoff."""

from __future__ import annotations

import asyncio
import functools
import inspect
from dataclasses import dataclass
from typing import Any, Callable

from .errors import HttpRequestFailed, NonRetryableError, RetryableError

__all__ = ["HttpRequestFailed", "NonRetryableError", "RetryConfig", "RetryableError", "with_retry"]


@dataclass(frozen=True)
class RetryConfig:
    """How often to retry after the first call, and how long to wait before each retry. Raises ValueError."""

    max_retries: int = 3
    base_delay: float = 1.0
    max_delay: float = 60.0
    backoff_factor: float = 2.0

    def __post_init__(self) -> None:
        for name in ("max_retries", "base_delay", "max_delay"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative: {getattr(self, name)}")
        if self.backoff_factor <= 0:
            raise ValueError(f"backoff_factor must be positive: {self.backoff_factor}")

    def delay_for(self, attempt: int) -> float:
        """Return the seconds to wait after the attempt of that number, from 0."""
        try:
            return float(min(self.base_delay * self.backoff_factor**attempt, self.max_delay))
        except OverflowError:
            return float(self.max_delay)


def with_retry(config: RetryConfig) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a coroutine function: RetryableError is retried, and the last one is raised. Other exceptions are raised at once."""
    if not isinstance(config, RetryConfig):
        raise TypeError("with_retry takes a RetryConfig: @with_retry(RetryConfig(max_retries=3))")

    def decorated(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        async def retrying(*args: Any, **kwargs: Any) -> Any:
            for attempt in range(config.max_retries):
                try:
                    return await _awaited(fn(*args, **kwargs))
                except RetryableError:
                    await asyncio.sleep(config.delay_for(attempt))
            return await _awaited(fn(*args, **kwargs))

        return retrying

    return decorated


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
