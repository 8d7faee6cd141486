"""The ExecutionContext of one call."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

from framework.plugins.protocol import ArtifactRef, ExecutionContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LAST = "limits"  # the field that is set last


class ReadOnlyContext(ExecutionContext):
    """An ExecutionContext whose fields stay what they are."""

    @property
    def asked_for_model(self) -> bool:
        """Whether the tool has looked for a model."""
        return "_asked" in self.__dict__

    def progress(self, message: str | None = None, done: float | None = None, total: float | None = None, unit: str | None = None) -> None:
        """Say how far the work is. The contract has no such member: a tool looks for it with getattr and does without."""
        report = self.__dict__.get("_report")
        if report is not None:
            report(message, done, total, unit)

    def __getattribute__(self, name: str) -> Any:
        if name in ("llm_query", "llm_enabled"):
            self.__dict__["_asked"] = True
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if _LAST in self.__dict__:
            raise FrozenInstanceError(f"the execution context is read-only: {name}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"the execution context is read-only: {name}")


def ref_of(said: Any) -> ArtifactRef:
    """Return the host's reference to an artifact as tools know it."""
    text = {name: said.get(name) for name in ("storage_uri", "source_tool")}
    return ArtifactRef(
        artifact_id=str(said.get("artifact_id") or ""),
        artifact_type=str(said.get("artifact_type") or "text"),
        file_path=str(said.get("file_path") or ""),
        metadata=dict(said.get("metadata") or {}),
        **{name: None if value is None else str(value) for name, value in text.items()},
    )
