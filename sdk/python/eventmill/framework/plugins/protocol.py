"""The types of the contract: what a tool returns, what it gets, and what it must have."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol, runtime_checkable

__all__ = [
    "ArtifactRef",
    "EventMillToolProtocol",
    "ExecutionContext",
    "LLMQueryInterface",
    "LLMResponse",
    "QueryHints",
    "ReferenceDataView",
    "ToolResult",
    "ValidationResult",
]


@dataclass
class ToolResult:
    """What execute returns."""

    ok: bool
    result: dict[str, Any] | None = None
    error_code: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None
    output_artifacts: list[dict[str, Any]] | None = None


@dataclass
class ValidationResult:
    """What validate_inputs returns."""

    ok: bool
    errors: list[str] | None = None


@dataclass(frozen=True)
class ArtifactRef:
    """A registered file of the session. It never changes."""

    artifact_id: str
    artifact_type: str
    file_path: str
    storage_uri: str | None = None
    """Where the file is in cloud storage: to be shown, not opened."""
    source_tool: str | None = None
    """The tool that made it, None for a file that a person loaded."""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class QueryHints:
    """What kind of question is asked of a model."""

    tier: str = "light"
    """light or heavy"""
    needs_reasoning: bool = False
    needs_structured_output: bool = False
    prefers_native_file: bool = False
    max_budget_cents: float | None = None


@dataclass
class LLMResponse:
    """A model's answer. transport_path is gs_uri, inline_bytes, text_fallback or text."""

    ok: bool
    text: str | None = None
    error: str | None = None
    token_usage: dict[str, Any] | None = None
    model_used: str | None = None
    transport_path: str | None = None
    fallback_reason: str | None = None


class LLMQueryInterface(Protocol):
    """The way to a language model."""

    def query_text(
        self,
        prompt: str,
        system_context: str | None = None,
        max_tokens: int = 4096,
        grounding_data: list[str] | None = None,
        hints: QueryHints | None = None,
    ) -> LLMResponse:
        """Ask in text; grounding_data is put before the prompt."""
        ...

    def query_multimodal(
        self,
        prompt: str,
        image_data: bytes,
        image_format: str,
        system_context: str | None = None,
        max_tokens: int = 4096,
    ) -> LLMResponse:
        """Ask about an image; ok=False where the model does not see."""
        ...

    def query_with_document(
        self,
        prompt: str,
        artifact: ArtifactRef,
        system_context: str | None = None,
        max_tokens: int = 8192,
        grounding_data: list[str] | None = None,
        hints: QueryHints | None = None,
    ) -> LLMResponse:
        """Ask about an artifact; ok=False where its text has to be taken out first."""
        ...

    def supports_native_document(self, mime_type: str) -> bool:
        """Report whether a connected model reads this type by itself."""
        ...


class ReferenceDataView(Protocol):
    """Reference data: the tool's own from its data directory, else the host's."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, default where there is none."""
        ...


@dataclass
class ExecutionContext:
    """What execute gets. It is for reading; register_artifact is the one way to leave something.

    The host fills every field; the defaults are for a tool's own tests.
    """

    session_id: str
    selected_pillar: str
    artifacts: list[ArtifactRef] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("eventmill.plugin"))
    reference_data: Any = field(default_factory=dict)
    llm_enabled: bool = False
    llm_query: LLMQueryInterface | None = None
    register_artifact: Callable[..., ArtifactRef] | None = None
    limits: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class EventMillToolProtocol(Protocol):
    """What the class of a tool has."""

    def metadata(self) -> dict[str, Any]:
        """Return at least tool_name and version."""
        ...

    def validate_inputs(self, payload: dict[str, Any]) -> ValidationResult:
        """Say whether a payload can be worked on, without working on it."""
        ...

    def execute(self, payload: dict[str, Any], context: ExecutionContext) -> ToolResult:
        """Do the work."""
        ...

    def summarize_for_llm(self, result: ToolResult) -> str:
        """Say in under 2,000 characters what was found."""
        ...
