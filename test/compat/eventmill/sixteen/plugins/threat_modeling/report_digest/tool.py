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


class ReportDigest:
    def metadata(self):
        return {"tool_name": "report_digest", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked(True)

    def execute(self, payload, context):
        prefix = context.config.get("EVENTMILL_BUCKET_PREFIX") or os.environ.get("EVENTMILL_BUCKET_PREFIX", "eventmill")
        common = os.path.join(os.getcwd(), "workspace", "storage", prefix + "-common")
        if not os.path.isdir(common):
            return Outcome(False, "no common bucket", "ARTIFACT_NOT_FOUND")
        out = os.path.join(common, "generated", "report_digest", "r.pdf.summary.md")
        os.makedirs(os.path.dirname(out), exist_ok=True)
        open(out, "w").write("# digest")
        return Outcome(True, result={"summary": "# digest"}, output_artifacts=[{"file_path": out}])

    def summarize_for_llm(self, result):
        return "d" * 3000
