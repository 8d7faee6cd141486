"""An answer with more to it than its data."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence


class Result:
    """What an operation may return instead of bare data.

    Members left out are not sent. Shapes: `metrics` {latency_ms, tokens_in,
    tokens_out, cost_total, provider, ...}; `nondeterminism` {is_nondeterministic,
    reasons, stability}; `artifacts` a list of {type, path, hash}; `diagnostics`
    a list of strings, shown only when debugging; `status` "succeeded" or
    "in_progress". A failure is raised, see PluginError.
    """

    def __init__(
        self,
        data: Any = None,
        *,
        status: str = "succeeded",
        metrics: Mapping[str, Any] | None = None,
        nondeterminism: Mapping[str, Any] | None = None,
        summary: str | None = None,
        artifacts: Sequence[Mapping[str, Any]] | None = None,
        diagnostics: Sequence[str] | None = None,
        skips: Sequence[Any] | None = None,
        citations: Sequence[Any] | None = None,
        next_cursor: str | None = None,
        schema_version: str | None = None,
    ) -> None:
        self.data = data
        self.status = status
        self.metrics = metrics
        self.nondeterminism = nondeterminism
        self.summary = summary
        self.artifacts = artifacts
        self.diagnostics = diagnostics
        self.skips = skips
        self.citations = citations
        self.next_cursor = next_cursor
        self.schema_version = schema_version

    def members(self) -> dict[str, Any]:
        """Return the members to send: data, status and whatever was given."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        given["data"] = self.data
        return given
