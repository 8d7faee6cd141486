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


class CaptureLoader:
    def metadata(self):
        return {"tool_name": "capture_loader", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked(True)

    def execute(self, payload, context):
        sys._sixteen_capture = {"packets": ["10.0.0.1 10.0.0.2", "10.0.0.1 192.0.2.7"]}
        return Outcome(True, result={"packets": 2})

    def summarize_for_llm(self, result):
        return "done"
