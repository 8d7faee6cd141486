from framework.plugins.protocol import ToolResult, ValidationResult


class SchemaAdvice:
    def metadata(self):
        return {"tool_name": "schema_advice", "version": "1.0.0"}

    def validate_inputs(self, payload):
        if "name" not in payload:
            return ValidationResult(ok=False, errors=["name is required", "it is text"])
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        return ToolResult(ok=True, result={"name": payload["name"], "extra": sorted(payload)})

    def summarize_for_llm(self, result):
        return "advised"
