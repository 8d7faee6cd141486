"""What a plugin returns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Mapping, Sequence


class SkipReason(str, Enum):
    """Why an item was left out."""

    TOO_LARGE = "too_large"
    EXT_FILTERED = "ext_filtered"
    UNSUPPORTED_FORMAT = "unsupported_format"
    EMPTY_EXTRACTION = "empty_extraction"
    AUTH = "auth"
    NETWORK = "network"
    OTHER = "other"

    def __str__(self) -> str:
        return str(self.value)


@dataclass
class Skip:
    """An item that was left out: the provider's id of it, and why."""

    id: str
    reason: Any
    name: str | None = None
    details: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the members that are not None."""
        reason = getattr(self.reason, "value", self.reason)
        said = {"id": self.id, "reason": reason, "name": self.name, "details": None if self.details is None else dict(self.details)}
        return {name: value for name, value in said.items() if value is not None}


@dataclass
class PluginResult:
    """What execute returns. Make one with ok, err or timed_out."""

    status: str = "success"
    data: Any = None
    error: Mapping[str, Any] | None = None
    cost: Mapping[str, Any] | None = None
    diagnostics: Sequence[str] | None = None
    skips: Sequence[Any] | None = None
    citations: Sequence[Mapping[str, Any]] | None = None
    next_cursor: Any = field(default=None)

    def __post_init__(self) -> None:
        if self.data is None:
            self.data = {}

    @classmethod
    def ok(cls, data: Any = None, cost: Any = None, diagnostics: Any = None, citations: Any = None, **members: Any) -> PluginResult:
        """Return a success; further members are skips and next_cursor."""
        return cls(status="success", data=data, cost=cost, diagnostics=diagnostics, citations=citations, **members)

    @classmethod
    def err(cls, message: str, code: str = "tool_error", details: Mapping[str, Any] | None = None, **members: Any) -> PluginResult:
        """Return a failure with its message and code."""
        error: dict[str, Any] = {"code": code, "message": message}
        if details:
            error["details"] = dict(details)
        return cls(status="error", error=error, **members)

    @classmethod
    def timed_out(cls, message: str = "the work took too long", **members: Any) -> PluginResult:
        """Return that time ran out."""
        return cls(status="timeout", error={"code": "timeout", "message": message}, **members)

    def with_skips(self, skips: Sequence[Any]) -> PluginResult:
        """Set the skips, and return this result."""
        self.skips = list(skips)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the members that are not None."""
        said: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.skips is not None:
            said["skips"] = [skip.to_dict() if isinstance(skip, Skip) else skip for skip in self.skips]
        return {name: value for name, value in said.items() if value is not None}


@dataclass
class IngestionResult(PluginResult):
    """The result of an operation that ingests: what it skipped comes right after its data."""

    @classmethod
    def ok(  # type: ignore[override]
        cls, data: Any = None, skips: Any = None, cost: Any = None, diagnostics: Any = None, citations: Any = None, **members: Any
    ) -> IngestionResult:
        """Return a success; a further member is next_cursor."""
        return cls(status="success", data=data, skips=skips, cost=cost, diagnostics=diagnostics, citations=citations, **members)
