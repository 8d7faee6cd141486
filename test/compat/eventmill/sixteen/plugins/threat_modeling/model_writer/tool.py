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


class ModelWriter:
    def metadata(self):
        return {"tool_name": "model_writer", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked(True)

    def execute(self, payload, context):
        self.count = getattr(self, "count", 0) + 1
        path = payload["output_path"]
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w") as file:
            json.dump({"model": payload.get("title"), "n": self.count}, file)
        return Outcome(True, result={"n": self.count})

    def summarize_for_llm(self, result):
        return "done"
