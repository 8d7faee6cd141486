"""Keeps what it was told in its module and on sys, for itself and for others."""

import sys

from framework.plugins.protocol import ToolResult, ValidationResult

_seen = []


class StateWriter:
    def __init__(self):
        self.calls = 0

    def metadata(self):
        return {"tool_name": "state_writer", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        self.calls += 1
        _seen.append(payload["word"])
        shared = sys.__dict__.setdefault("_compat_words", [])
        shared.append(payload["word"])
        return ToolResult(ok=True, result={"calls": self.calls, "module": list(_seen)})

    def summarize_for_llm(self, result):
        return "written"
