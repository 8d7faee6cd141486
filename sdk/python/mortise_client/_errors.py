"""The errors of the client.

    MortiseError
    +-- ApprovalPending    a person has to approve the call first
    +-- ArgumentsChanged   the arguments are not those of the call that was made for this tool call
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._client import Pending


class MortiseError(Exception):
    """What every error of the client is.

    `code` is one of the host's codes (docs/codes.md), or one of the client's own: approval_pending,
    arguments_changed, in_progress, unreachable, bad_response, too_many_operations and configuration.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        call_id: str | None = None,
        plugin_code: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
        self.call_id = call_id
        self.plugin_code = plugin_code


class ApprovalPending(MortiseError):
    """The host waits for a person. Whatever the framework was told, the host has no approval yet."""

    def __init__(self, pending: Pending) -> None:
        super().__init__(
            "approval_pending",
            f"{pending.operation} waits for a person, who decides at {pending.url}",
            retryable=True,
            call_id=pending.call_id,
        )
        self.pending = pending


class ArgumentsChanged(MortiseError):
    """The arguments differ from those of the call that was made for this tool call. Nothing ran with the new ones."""

    def __init__(self, operation: str, tool_call_id: str) -> None:
        super().__init__(
            "arguments_changed",
            f"the tool call {tool_call_id} of {operation} was made with other arguments, or by another caller;"
            " other arguments are another call",
        )


def mortise_error_of(error: BaseException | None) -> MortiseError | None:
    """Find an error of the client in what a framework has wrapped it in."""
    for _ in range(8):
        if error is None or isinstance(error, MortiseError):
            return error
        error = error.__cause__ or error.__context__
    return None
