from framework.plugins.protocol import ToolResult, ValidationResult


class SavedResult:
    def metadata(self):
        return {"tool_name": "saved_result", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        if payload.get("form") == "text":
            return ToolResult(ok=True, result={"summary": "not this", "visualization": "graph TD; A-->B", "n": 1})
        return ToolResult(ok=True, result={"n": 1, "flag": payload.get("flag"), "text": payload.get("text")})

    def summarize_for_llm(self, result):
        return "saved"
