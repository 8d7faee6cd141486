"""Count the lines of a log, by level."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

from framework.plugins.protocol import ToolResult, ValidationResult


class LineCounter:
    """Counts lines; see README.md."""

    def metadata(self) -> dict[str, Any]:
        return {"tool_name": "line_counter", "version": "1.0.0"}

    def validate_inputs(self, payload: dict[str, Any]) -> ValidationResult:
        if not isinstance(payload.get("artifact_id"), str) or not payload["artifact_id"]:
            return ValidationResult(ok=False, errors=["artifact_id: the id of a log is needed"])
        return ValidationResult(ok=True)

    def execute(self, payload: dict[str, Any], context: Any) -> ToolResult:
        found = [a for a in context.artifacts if a.artifact_id == payload["artifact_id"]]
        if not found:
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=f"there is no {payload['artifact_id']}")
        levels = context.reference_data.get("log_levels") or ["ERROR"]
        counts: Counter[str] = Counter()
        with open(found[0].file_path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                counts["lines"] += 1
                counts.update(level for level in levels if level in line)
        os.makedirs("workspace/artifacts", exist_ok=True)
        path = "workspace/artifacts/line_counts.json"
        with open(path, "w", encoding="utf-8") as out:
            json.dump(counts, out)
        context.register_artifact(artifact_type="json_events", file_path=path, source_tool="line_counter", metadata={})
        remark = ""
        if context.llm_query is not None:
            answer = context.llm_query.query_text(prompt=f"What do these counts say? {dict(counts)}", max_tokens=256)
            remark = answer.text if answer.ok else ""
        return ToolResult(ok=True, result={"lines": counts["lines"], "levels": {n: counts[n] for n in levels}, "remark": remark})

    def summarize_for_llm(self, result: ToolResult) -> str:
        counted = result.result or {}
        levels = ", ".join(f"{n} {name}" for name, n in counted.get("levels", {}).items())
        return f"{counted.get('lines', 0)} lines: {levels}."
