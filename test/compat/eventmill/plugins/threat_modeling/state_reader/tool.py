"""Reads what another plugin left, in execute and in validate_inputs."""

import sys

from framework.plugins.protocol import ToolResult, ValidationResult


class StateReader:
    def metadata(self):
        return {"tool_name": "state_reader", "version": "1.0.0"}

    def validate_inputs(self, payload):
        if not getattr(sys, "_compat_words", None):
            return ValidationResult(ok=False, errors=["nothing was written in this session: run state_writer first"])
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        import plugins.threat_modeling.state_writer.tool as again  # the same file, a second time

        return ToolResult(ok=True, result={"words": list(sys._compat_words), "again": list(again._seen)})

    def summarize_for_llm(self, result):
        return ", ".join(result.result["words"])
