"""Trying again, with longer and longer pauses."""

from __future__ import annotations

import asyncio
import functools
import inspect
from dataclasses import dataclass
from typing import Any, Callable

from .errors import HttpRequestFailed, NonRetryableError, RetryableError


@dataclass(frozen=True)
class RetryConfig:
    """How often to try, and how long to wait: base_delay seconds, then `factor` times as long, never over max_delay."""

    max_attempts: int = 3
    base_delay: float = 1.0
    max_delay: float = 60.0
    factor: float = 2.0

    def delay(self, attempt: int, exc: BaseException | None = None) -> float:
        """Return the pause after the attempt of that number, from 1; what a provider asks for counts where it is longer."""
        pause = self.base_delay * self.factor ** min(attempt - 1, 64)
        asked = getattr(exc, "retry_after_seconds", None) or getattr(exc, "retry_after", None) or 0.0
        return float(min(self.max_delay, max(pause, asked)))


def retryable(exc: BaseException) -> bool:
    """Report whether with_retry goes on after an exception."""
    if isinstance(exc, NonRetryableError):
        return False
    return isinstance(exc, RetryableError) or (isinstance(exc, HttpRequestFailed) and exc.is_retryable)


def with_retry(fn: Any = None, config: RetryConfig | None = None) -> Any:
    """Make a coroutine function one that is tried again: @with_retry, @with_retry(RetryConfig(5)), with_retry(fn, config).

    RetryableError is tried again, and HttpRequestFailed of 429 and 5xx; the
    last exception comes through. Everything else comes through at once.
    """
    if isinstance(fn, RetryConfig):
        fn, config = None, fn
    if fn is None:
        return functools.partial(with_retry, config=config)
    return _retrying(fn, config or RetryConfig())


def _retrying(fn: Callable[..., Any], config: RetryConfig) -> Callable[..., Any]:
    @functools.wraps(fn)
    async def tried(*args: Any, **kwargs: Any) -> Any:
        attempt = 1
        while True:
            try:
                value = fn(*args, **kwargs)
                return await value if inspect.isawaitable(value) else value
            except Exception as exc:
                if attempt >= config.max_attempts or not retryable(exc):
                    raise
                await asyncio.sleep(config.delay(attempt, exc))
            attempt += 1

    return tried
