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


class CasePatterns:
    def metadata(self):
        return {"tool_name": "case_patterns", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked(True)

    def execute(self, payload, context):
        ask = payload.get("use_llm") is True and context.llm_enabled and hasattr(context.llm_query, "query_text")
        return Outcome(True, result={"limit": payload.get("limit"), "words": payload.get("words"), "text": payload.get("text"), "asked": bool(ask)})

    def summarize_for_llm(self, result):
        return "done"
