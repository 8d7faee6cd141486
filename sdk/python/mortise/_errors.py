"""The exceptions of this SDK.

    MortiseError
    +-- PluginError        a failure of the plugin's own; raise it with a code of your choosing
    |   +-- InvalidInput   the input is not what the operation takes
    |   +-- Cancelled      the caller gave up; raised by Context.check and by service calls
    +-- ServiceError       the host refused or failed a service; `code` is one of mortise.CODES

Any of them may leave an operation: the call then fails with its message. Any
other exception becomes a `plugin_error` named after its class, with the
traceback on standard error.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

# The codes that a plugin may speak itself; any other is its own and travels as plugin_code.
SPOKEN = frozenset(
    (
        "plugin_error",
        "invalid_input",
        "needs_context",
        "dependency_missing",
        "rate_limited",
        "timeout",
        "cancelled",
        "limit_exceeded",
        "unavailable",
    )
)


class MortiseError(Exception):
    """What all errors of this SDK have: code, message, details, retryable, retry_after_ms."""

    code = "plugin_error"

    def __init__(
        self,
        message: str,
        code: str = "",
        details: Mapping[str, Any] | None = None,
        retryable: bool = False,
        retry_after_ms: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.details = dict(details or {})
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms


class PluginError(MortiseError):
    """A failure of the plugin's own: PluginError("no such file: a.log", code="FILE_NOT_FOUND")."""


class InvalidInput(PluginError):
    """The input is not what the operation takes."""

    code = "invalid_input"


class Cancelled(PluginError):
    """The call was cancelled: clean up and let it pass."""

    code = "cancelled"

    def __init__(self, message: str = "the call was cancelled") -> None:
        super().__init__(message)


class ServiceError(MortiseError):
    """A host service was refused or failed; `code` says why, `service_denied` for one not granted."""

    code = "internal"
