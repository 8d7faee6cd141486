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

CACHE = {}


class WallLogs:
    def metadata(self):
        return {"tool_name": "wall_logs", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked(True)

    def execute(self, payload, context):
        place = context.config.get("workspace_dir", "/app/workspace")
        rows = CACHE.setdefault(payload["path"], []) 
        rows.append(place)
        return Outcome(True, result={"place": place, "calls": len(rows), "orange": context.config.get("condition_orange", False)})

    def summarize_for_llm(self, result):
        return "done"
