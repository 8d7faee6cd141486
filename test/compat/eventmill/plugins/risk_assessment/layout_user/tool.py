"""Uses the class of another plugin, without a context, as published plugins do."""

from framework.plugins.protocol import ToolResult, ValidationResult
from plugins.log_analysis.layout_base.tool import LayoutBase


class LayoutUser:
    def metadata(self):
        return {"tool_name": "layout_user", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        import plugins

        inner = LayoutBase().execute({"text": payload.get("text", "one two")}, None)
        return ToolResult(ok=inner.ok, result={"inner": inner.result, "package": plugins.__name__})

    def summarize_for_llm(self, result):
        return "used another"
