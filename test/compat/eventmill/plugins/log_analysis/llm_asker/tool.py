from framework.plugins.protocol import QueryHints, ToolResult, ValidationResult


class LlmAsker:
    def metadata(self):
        return {"tool_name": "llm_asker", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        if not context.llm_enabled:
            return ToolResult(ok=True, result={"llm": False})
        ask = context.llm_query
        plain = ask.query_text(prompt="small question", system_context="be brief", max_tokens=2048, grounding_data=["fact one"])
        long = ask.query_text(prompt="long answer", max_tokens=16384)
        heavy = ask.query_text(prompt="hard question", hints=QueryHints(tier="heavy", needs_reasoning=True))
        native = ask.supports_native_document("application/pdf")
        document = None
        if context.artifacts:
            answer = ask.query_with_document(prompt="what is in it", artifact=context.artifacts[0], max_tokens=4096, hints=QueryHints(prefers_native_file=True))
            document = [answer.ok, answer.text, answer.transport_path, bool(answer.fallback_reason)]
        return ToolResult(
            ok=True,
            result={
                "plain": [plain.ok, plain.text, plain.model_used, plain.transport_path],
                "long": long.model_used,
                "heavy": heavy.model_used,
                "native": native,
                "document": document,
            },
        )

    def summarize_for_llm(self, result):
        return "asked"
