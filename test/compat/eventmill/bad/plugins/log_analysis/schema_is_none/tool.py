"""Works, though what its manifest calls a schema is none."""

from framework.plugins.protocol import ToolResult, ValidationResult


class SchemaIsNone:
    def metadata(self):
        return {"tool_name": "schema_is_none", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        return ToolResult(ok=True, result={"worked": True})

    def summarize_for_llm(self, result):
        return "worked"
