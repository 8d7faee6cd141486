from framework.plugins.protocol import ToolResult, ValidationResult


class MinimalManifest:
    def metadata(self):
        return {"tool_name": "minimal_manifest", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        return ToolResult(ok=True, result={"timeout": context.limits["timeout"]})

    def summarize_for_llm(self, result):
        return "minimal"
