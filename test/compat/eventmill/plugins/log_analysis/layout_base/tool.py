from framework.plugins.protocol import ToolResult, ValidationResult

from plugins.log_analysis.layout_base.words import count


class LayoutBase:
    def metadata(self):
        return {"tool_name": "layout_base", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok="text" in payload, errors=None if "text" in payload else ["text is required"])

    def execute(self, payload, context):
        return ToolResult(ok=True, result={"words": count(payload["text"]), "context": context is not None})

    def summarize_for_llm(self, result):
        return f"{result.result['words']} words"
