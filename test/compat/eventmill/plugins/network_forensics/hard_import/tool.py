import no_such_parser  # noqa: F401

from framework.plugins.protocol import ToolResult, ValidationResult


class HardImport:
    def metadata(self):
        return {"tool_name": "hard_import", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        return ToolResult(ok=True, result={})

    def summarize_for_llm(self, result):
        return "never"
