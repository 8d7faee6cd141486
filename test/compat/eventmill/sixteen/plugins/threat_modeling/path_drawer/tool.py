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


class PathDrawer:
    def metadata(self):
        return {"tool_name": "path_drawer", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked(True)

    def execute(self, payload, context):
        os.makedirs("workspace/artifacts", exist_ok=True)
        listed = []
        for end in ("txt", "mmd", "md"):
            path = os.path.join(os.getcwd(), "workspace", "artifacts", "paths." + end)
            open(path, "w").write("graph " + end)
            listed.append({"artifact_id": "own_" + end, "file_path": path, "artifact_type": "text"})
        return Outcome(True, result={"visualization": "graph"}, output_artifacts=listed)

    def summarize_for_llm(self, result):
        return "done"
