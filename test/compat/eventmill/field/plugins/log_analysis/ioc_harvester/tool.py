"""Collects indicators from reports."""

from __future__ import annotations

import html
import importlib
import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from framework.plugins.protocol import QueryHints, ToolResult, ValidationResult

from .extract import harvest

if TYPE_CHECKING:
    from framework.plugins.protocol import ArtifactRef, ExecutionContext

try:
    from bs4 import BeautifulSoup
except ImportError:
    BeautifulSoup = None

SEEN: dict[str, int] = {}
_LOCK = threading.Lock()
TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.S | re.I)
PROMPT = "List every indicator of compromise in the attached report, one per line, nothing else."


class HarvestError(RuntimeError):
    code = "EXECUTION_ERROR"


def text_of_html(raw: str) -> str:
    # bs4 where it is there; what both leave is the same for our patterns
    if BeautifulSoup is not None and os.environ.get("IOC_USE_BS4"):
        return BeautifulSoup(raw, "html.parser").get_text(" ")
    return html.unescape(TAGS.sub(" ", raw))


def text_of_pdf(path: str) -> str:
    try:
        pypdf = importlib.import_module("pypdf_of_the_lab")
    except ModuleNotFoundError as exc:
        raise HarvestError("no PDF reader is installed") from exc
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)


class IocHarvester:
    def metadata(self) -> dict:
        return dict(tool_name="ioc_harvester", version="1.1.0", seen=len(SEEN))

    def validate_inputs(self, payload: dict) -> ValidationResult:
        if payload.get("all") or payload.get("artifact_id") or payload.get("artifact_ids") or payload.get("file_path"):
            return ValidationResult(True)
        return ValidationResult(False, ["artifact_id, artifact_ids, file_path or --all"])

    def _refs(self, payload: dict, context: "ExecutionContext") -> list["ArtifactRef"]:
        ids = payload.get("artifact_ids") or ([payload["artifact_id"]] if payload.get("artifact_id") else [])
        if payload.get("all"):
            return [ref for ref in context.artifacts if ref.artifact_type in ("html_report", "pdf_report", "text", "log_stream") and ref.source_tool is None]
        if ids:
            return [ref for ref in context.artifacts if ref.artifact_id in ids]
        return [ref for ref in context.artifacts if ref.file_path == payload["file_path"]]

    def _text(self, ref: "ArtifactRef", context: "ExecutionContext", notes: list[str]) -> str:
        if ref.artifact_type == "pdf_report":
            if context.llm_query is not None and context.llm_query.supports_native_document("application/pdf"):
                answer = context.llm_query.query_with_document(prompt=PROMPT, artifact=ref, max_tokens=8192, hints=QueryHints(prefers_native_file=True))
                if answer.ok:
                    notes.append(f"{os.path.basename(ref.file_path)}: read by the model")
                    return answer.text or ""
                notes.append(f"{os.path.basename(ref.file_path)}: the model would not")
            return text_of_pdf(ref.file_path)
        with open(ref.file_path, encoding="utf-8", errors="ignore") as handle:
            raw = handle.read()
        return text_of_html(raw) if ref.artifact_type == "html_report" else raw

    def execute(self, payload: dict, context: "ExecutionContext") -> ToolResult:
        refs = self._refs(payload, context)
        if not refs:
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="none of these artifacts is here")
        if hasattr(context, "artifact_registry"):
            raise AssertionError("this host is newer than we know")
        notes: list[str] = []
        try:
            texts = [(ref, self._text(ref, context, notes)) for ref in refs]
        except HarvestError as exc:
            return ToolResult(ok=False, error_code=exc.code, message=str(exc), details={"cause": type(exc.__cause__).__name__, "notes": notes})
        with ThreadPoolExecutor(max_workers=4) as pool:
            harvested = list(pool.map(lambda item: harvest(item[1]), texts))
        merged: dict[str, dict[str, int]] = {}
        for one in harvested:
            for kind, values in one.items():
                for value, count in values.items():
                    merged.setdefault(kind, {})[value] = merged.get(kind, {}).get(value, 0) + count
        fresh = []
        with _LOCK:
            for kind in merged:
                for value in merged[kind]:
                    if value not in SEEN:
                        fresh.append(value)
                    SEEN[value] = SEEN.get(value, 0) + merged[kind][value]
        workspace = os.environ["EVENTMILL_WORKSPACE"]
        out = os.path.join(workspace, "artifacts", "iocs.json")
        with open(out, "w", encoding="utf-8") as handle:
            json.dump(merged, handle, sort_keys=True)
        assert os.path.samefile(out, os.path.join("workspace", "artifacts", "iocs.json"))
        ref = context.register_artifact(artifact_type="json_events", file_path=out, source_tool="ioc_harvester", metadata={"kinds": sorted(merged)})
        return ToolResult(
            ok=True,
            result={
                "indicators": {kind: dict(sorted(values.items())) for kind, values in sorted(merged.items())},
                "fresh": sorted(fresh),
                "files": [os.path.basename(ref.file_path) for ref in refs],
                "known_so_far": len(SEEN),
                "notes": notes,
                "artifact": {"id": ref.artifact_id, "type": ref.artifact_type, "source": ref.source_tool, "kinds": ref.metadata.get("kinds")},
            },
            output_artifacts=[{"file_path": out, "artifact_type": "json_events"}],
        )

    def summarize_for_llm(self, result: ToolResult) -> str:
        counts: Any = {kind: len(values) for kind, values in result.result["indicators"].items()}
        return f"{sum(counts.values())} indicators ({', '.join(f'{v} {k}' for k, v in counts.items())}), {len(result.result['fresh'])} of them new."
