"""What an operator answers about a call that it does not carry out now."""

from __future__ import annotations

from ._errors import MortiseError, PluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Mapping

    from ._context import Context
    from ._plugin import Operation

    Outcome = Literal["succeeded", "failed", "not_done", "unknown"]

OUTCOMES = ("succeeded", "failed", "not_done", "unknown")


class Reconciled:
    """What an operator found out about an earlier run of a call.

    Args:
        outcome: "succeeded"; "failed"; "not_done" where it never happened and may be done now; "unknown" where
            the outcome is not known yet.
        data: of one that succeeded, what the operator would have returned.
        error: of one that failed, why.
        evidence: whatever shows it, at most 64 KiB of JSON.
    """

    def __init__(
        self, outcome: Outcome, *, data: Any = None, error: MortiseError | None = None, evidence: Any = None
    ) -> None:
        self.outcome = outcome
        self.data = data
        self.error = error
        self.evidence = evidence

    def members(self) -> dict[str, Any]:
        """Return the members to send."""
        said: dict[str, Any] = {"outcome": self.outcome}
        if self.outcome not in OUTCOMES:
            raise PluginError(f"the outcome is one of {', '.join(OUTCOMES)}, not {self.outcome!r}", code="INVALID_RESULT")
        if self.outcome == "succeeded":
            said["data"] = self.data
        elif self.outcome == "failed" and self.error is not None:
            from ._session import error_data, error_message

            said["error"] = {**error_data(self.error), "message": error_message(self.error)}
        if self.evidence is not None:
            said["evidence"] = self.evidence
        return said


def answer(op: Operation, params: Mapping[str, Any], ctx: Context | None) -> dict[str, Any]:
    """Return what op says of the call; raises what its function raises."""
    input = params.get("input")
    if op.question == "preview":
        return {"preview": op.call(input, ctx)}
    if "effects" in op.parameters and isinstance(input, (dict, type(None))):
        input = {**(input or {}), "effects": params.get("effects") or []}
    found = op.call(input, ctx)
    if isinstance(found, dict):
        unknown = found.keys() - {"outcome", "data", "error", "evidence"}
        if "outcome" not in found or unknown:
            raise PluginError("reconcile answers outcome, data, error and evidence", code="INVALID_RESULT")
        found = Reconciled(**found)
    if not isinstance(found, Reconciled):
        raise PluginError(f"reconcile answers Reconciled, not {type(found).__name__}", code="INVALID_RESULT")
    return found.members()
