import json
import os
import sys
from dataclasses import dataclass, field
from typing import Optional

@dataclass
class Outcome:
    ok: bool
    message: Optional[str] = None
    error_code: Optional[str] = None
    result: Optional[dict] = None
    output_artifacts: Optional[list] = None

@dataclass
class Checked:
    ok: bool
    errors: list = field(default_factory=list)


class CaptureOracle:
    def metadata(self):
        return {"tool_name": "capture_oracle", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked(True)

    def execute(self, payload, context):
        if not hasattr(sys, "_sixteen_capture"):
            return Outcome(False, "no capture is loaded", "NO_CAPTURE")
        from plugins.network_forensics.capture_hunter.tool import CaptureHunter
        hunted = CaptureHunter().execute(payload, None)
        if not context.llm_enabled:
            return Outcome(False, "  a model is\nneeded: connect one  ", "LLM_UNAVAILABLE")
        return Outcome(True, result=hunted.result)

    def summarize_for_llm(self, result):
        return "done"
