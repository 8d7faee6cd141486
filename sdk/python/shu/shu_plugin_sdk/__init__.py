"""What Shu plugins import: results, skips, retries and the exceptions of host services.

    from shu_plugin_sdk import PluginResult, Skip, SkipReason

`testing` has hosts for tests, `contracts` the types and their checks, `template_cli` a plugin to begin with.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from .errors import HttpRequestFailed, NonRetryableError, RetryableError
from .result import IngestionResult, PluginResult, Skip, SkipReason
from .retry import RetryConfig, with_retry

if TYPE_CHECKING:
    from . import contracts, template_cli, testing
    from .contracts import assert_plugin_contract
    from .template_cli import copy_cookiecutter_template
    from .testing import FakeHostBuilder, patch_retry_sleep

__all__ = [
    "FakeHostBuilder",
    "HttpRequestFailed",
    "IngestionResult",
    "NonRetryableError",
    "PluginResult",
    "RetryConfig",
    "RetryableError",
    "Skip",
    "SkipReason",
    "assert_plugin_contract",
    "contracts",
    "copy_cookiecutter_template",
    "patch_retry_sleep",
    "template_cli",
    "testing",
    "with_retry",
]

# Loaded with the first use: a served plugin has none for them.
_LATER = {
    "FakeHostBuilder": "testing",
    "patch_retry_sleep": "testing",
    "assert_plugin_contract": "contracts",
    "copy_cookiecutter_template": "template_cli",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(_import_module(f"{__name__}.{_LATER[name]}"), name)
    if name in ("contracts", "template_cli", "testing"):
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"shu_plugin_sdk has no {name}")
