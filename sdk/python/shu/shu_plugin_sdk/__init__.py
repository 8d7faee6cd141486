"""What Shu plugins import: results, skips, retries and the exceptions of host services.

    from shu_plugin_sdk import PluginResult, Skip, SkipReason

`testing` has a host for tests, `contracts` the types and their checks.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from .errors import HttpRequestFailed, NonRetryableError, RetryableError
from .result import IngestionResult, PluginResult, Skip, SkipReason
from .retry import RetryConfig, with_retry

if TYPE_CHECKING:
    from . import contracts, testing

__all__ = [
    "HttpRequestFailed",
    "IngestionResult",
    "NonRetryableError",
    "PluginResult",
    "RetryConfig",
    "RetryableError",
    "Skip",
    "SkipReason",
    "contracts",
    "testing",
    "with_retry",
]


def __getattr__(name: str) -> Any:
    if name in ("contracts", "testing"):  # with the first use: a served plugin has none for them
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"shu_plugin_sdk has no {name}")
