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


class IntelReader:
    def metadata(self):
        return {"tool_name": "intel_reader", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Checked(True)

    def execute(self, payload, context):
        from framework.logging.structured import log_llm_interaction
        from framework.plugins.protocol import ArtifactRef, QueryHints
        from framework.reference_data.mitre_attack import get_mitre_db
        db = get_mitre_db()
        ref = next(a for a in context.artifacts if a.artifact_id == payload["artifact_id"])
        text = open(ref.file_path).read()
        known = {t: db[t]["tactics"] for t in ("T0855", "T1059.001", "T9999") if t in text and t in db}
        usage = None
        if context.llm_enabled:
            own = os.path.join(os.environ.get("EVENTMILL_WORKSPACE", "/tmp"), "copy.pdf")
            open(own, "wb").write(b"%PDF-1.4 " + text.encode())
            mine = ArtifactRef("art_of_its_own", "pdf_report", own)
            answer = context.llm_query.query_with_document("what?", mine, max_tokens=16384, hints=QueryHints(tier="heavy", prefers_native_file=True), grounding_data=[])
            if not answer.ok:
                answer = context.llm_query.query_text("chunk", max_tokens=4096, hints=QueryHints(tier="light", needs_structured_output=True))
            usage = answer.token_usage
            log_llm_interaction("what?", answer.text, model_id=answer.model_used)
        os.makedirs("workspace/artifacts", exist_ok=True)
        path = os.path.join("workspace", "artifacts", "art_1_ti_iocs.json")
        json.dump(known, open(path, "w"))
        made = context.register_artifact("json_events", path, "intel_reader", None)
        return Outcome(True, result={"known": known, "usage": usage, "path": made.file_path == path, "enterprise": context.reference_data.get("mitre_attack_enterprise"), "keys": context.reference_data.keys()}, output_artifacts=[{"artifact_id": made.artifact_id, "artifact_type": "json_events", "file_path": path}])

    def summarize_for_llm(self, result):
        return "done"
