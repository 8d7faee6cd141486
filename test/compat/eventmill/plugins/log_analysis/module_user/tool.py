"""Imports every module that published plugins import of their framework."""

from framework.logging.structured import log_llm_interaction
from framework.plugins.protocol import (
    ArtifactRef,
    EventMillToolProtocol,
    ExecutionContext,
    LLMResponse,
    QueryHints,
    ToolResult,
    ValidationResult,
)
from framework.reference_data.mitre_attack import get_mitre_db


class ModuleUser:
    def metadata(self):
        return {"tool_name": "module_user", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        log_llm_interaction("a prompt", "an answer", model_id="m", history_turns=2, session_id=context.session_id, error=None)
        log_llm_interaction("a prompt", None)
        db = get_mitre_db()
        hints = QueryHints()
        return ToolResult(
            ok=True,
            result={
                "hints": [hints.tier, hints.needs_reasoning, hints.needs_structured_output, hints.prefers_native_file, hints.max_budget_cents],
                "response": LLMResponse(ok=False).transport_path,
                "techniques": {key: db[key]["name"] for key in sorted(db)},
                "context": isinstance(context, ExecutionContext),
                "artifact": ArtifactRef("art_00000000", "text", "/x").metadata,
                "protocol": EventMillToolProtocol.__name__,
            },
        )

    def summarize_for_llm(self, result):
        return "imported"
