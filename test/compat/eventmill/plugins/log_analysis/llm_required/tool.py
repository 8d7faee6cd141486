from framework.plugins.protocol import ToolResult, ValidationResult


class LlmRequired:
    def metadata(self):
        return {"tool_name": "llm_required", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        raise RuntimeError("it was run without a model")

    def summarize_for_llm(self, result):
        return "never"
