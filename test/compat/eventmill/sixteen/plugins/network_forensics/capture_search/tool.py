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


class CaptureSearch:
    def metadata(self):
        return {"tool_name": "capture_search", "version": "1.0.0"}

    def validate_inputs(self, payload):
        loaded = hasattr(sys, "_sixteen_capture")
        return Checked(loaded, [] if loaded else ["no capture is loaded"])

    def execute(self, payload, context):
        from plugins.network_forensics.capture_loader.tool import CaptureLoader
        capture = sys._sixteen_capture
        return Outcome(True, result={"hits": [p for p in capture["packets"] if payload["ip"] in p], "class": CaptureLoader.__name__})

    def summarize_for_llm(self, result):
        return "done"
