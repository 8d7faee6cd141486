"""What a plugin returns, and what the host returns to it of an ingestion."""

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
    reason: Any = SkipReason.OTHER
    name: str | None = None
    details: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the members that say something; a reason that is none of SkipReason is `other`."""
        try:
            reason = SkipReason(self.reason).value
        except ValueError:
            reason = SkipReason.OTHER.value
        said = {"id": self.id, "name": self.name, "reason": reason, "details": dict(self.details) if self.details else None}
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
    next_cursor: Any = None

    @classmethod
    def ok(cls, data: Any = None, **members: Any) -> PluginResult:
        """Return a success; members are cost, diagnostics, skips, citations, next_cursor."""
        return cls(status="success", data=data, **members)

    @classmethod
    def err(cls, message: str, code: str = "plugin_error", details: Mapping[str, Any] | None = None, **members: Any) -> PluginResult:
        """Return a failure with its message and code."""
        error: dict[str, Any] = {"code": code, "message": message}
        if details:
            error["details"] = dict(details)
        return cls(status="error", error=error, **members)

    @classmethod
    def timed_out(cls, message: str = "the work took too long", **members: Any) -> PluginResult:
        """Return that time ran out."""
        return cls(status="timeout", error={"code": "timeout", "message": message}, **members)

    def to_dict(self) -> dict[str, Any]:
        """Return the members that say something."""
        said: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.skips is not None:
            said["skips"] = [skip.to_dict() if isinstance(skip, Skip) else skip for skip in self.skips]
        return {name: value for name, value in said.items() if value is not None or name == "status"}


@dataclass
class IngestionResult:
    """What host.kb says of an ingestion, as an object: IngestionResult.from_dict(answer)."""

    ko_id: str = ""
    document_id: str = ""
    word_count: int = 0
    character_count: int = 0
    chunk_count: int = 0
    extraction: Mapping[str, Any] = field(default_factory=dict)
    skipped: bool = False
    skip_reason: str | None = None

    @classmethod
    def from_dict(cls, answer: Mapping[str, Any]) -> IngestionResult:
        """Return the members that are known; others are left out."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in answer.items() if name in known})

    def to_dict(self) -> dict[str, Any]:
        """Return all members."""
        return {one.name: getattr(self, one.name) for one in fields(self)}
