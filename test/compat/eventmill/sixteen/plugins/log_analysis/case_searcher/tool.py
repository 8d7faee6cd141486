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

def find(payload, context):
    path = payload.get("file_path") or payload.get("path") or ""
    if os.path.exists(path):
        return path
    return next((a.file_path for a in context.artifacts if os.path.basename(a.file_path) == os.path.basename(path)), None)


class CaseSearcher:
    def metadata(self):
        return {"tool_name": "case_searcher", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked("pattern" in payload, [] if "pattern" in payload else ["pattern is required"])

    def execute(self, payload, context):
        path = find(payload, context)
        hits = [n for n, line in enumerate(open(path, errors="replace"), 1) if payload["pattern"] in line]
        return Outcome(True, result={"hits": hits})

    def summarize_for_llm(self, result):
        return "done"
