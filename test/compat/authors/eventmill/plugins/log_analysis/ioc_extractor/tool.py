"""Extracts indicators from text or HTML. bs4 is used when installed."""
from __future__ import annotations
import html
import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

try:
    from bs4 import BeautifulSoup
except ImportError:
    BeautifulSoup = None

@dataclass
class ToolResult:
    ok: bool
    result: dict | None = None
    error_code: str | None = None
    message: str | None = None
    details: dict | None = None
    output_artifacts: list | None = None

@dataclass
class ValidationResult:
    ok: bool
    errors: list | None = None

REFANG = [(r"\[\.\]|\(\.\)|\{\.\}", "."), (r"\bhxxp", "http"), (r"\[:\]", ":"), (r"\[@\]|\(at\)", "@")]
PATTERNS = {
    "url": r"\bhttps?://[^\s\"'<>)\]]+",
    "email": r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b",
    "sha256": r"\b[a-fA-F0-9]{64}\b",
    "sha1": r"\b[a-fA-F0-9]{40}\b",
    "md5": r"\b[a-fA-F0-9]{32}\b",
    "cve": r"\bCVE-\d{4}-\d{4,7}\b",
    "technique": r"\bT\d{4}(?:\.\d{3})?\b",
    "ipv4": r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
}
MAX_BYTES = 2_000_000

def strip_markup(text):
    if BeautifulSoup is not None:
        return BeautifulSoup(text, "html.parser").get_text(" ")
    return html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"(?is)<(script|style).*?</\1>", " ", text)))

class IocExtractor:
    def metadata(self):
        return {"tool_name": "ioc_extractor", "version": "1.3.2", "types": list(PATTERNS), "bs4": BeautifulSoup is not None}

    def validate_inputs(self, payload):
        e = []
        if not payload.get("text") and not payload.get("file_path") and not payload.get("artifact_id"): e.append("text, file_path or artifact_id is required")
        kinds = payload.get("types")
        if kinds is not None:
            kinds = kinds.split(",") if isinstance(kinds, str) else kinds
            e += [f"unknown type {k}" for k in kinds if k not in PATTERNS]
        return ValidationResult(not e, e or None)

    def execute(self, payload, context):
        text = payload.get("text")
        if not text:
            path = payload.get("file_path") or next((a.file_path for a in context.artifacts if a.artifact_id == payload["artifact_id"]), None)
            if not path or not Path(path).is_file():
                return ToolResult(False, error_code="ARTIFACT_NOT_FOUND", message="nothing to read")
            if Path(path).stat().st_size > MAX_BYTES:
                return ToolResult(False, error_code="FILE_TOO_LARGE", message="over 2 MB", details={"limit": MAX_BYTES})
            text = Path(path).read_text(errors="replace")
            if path.endswith((".html", ".htm")): text = strip_markup(text)
        for pat, rep in REFANG: text = re.sub(pat, rep, text)
        wanted = payload.get("types") or list(PATTERNS)
        wanted = wanted.split(",") if isinstance(wanted, str) else wanted
        found = {}
        for kind in wanted:
            vals = {m.group(0) for m in re.finditer(PATTERNS[kind], text)}
            if kind == "ipv4":
                keep = set()
                for v in vals:
                    try:
                        if ipaddress.ip_address(v).is_global or str(payload.get("private", "")).lower() == "true": keep.add(v)
                    except ValueError: pass
                vals = keep
            elif kind in ("md5", "sha1", "sha256"): vals = {v.lower() for v in vals}
            elif kind == "url": vals = {v.rstrip(".,;") for v in vals}
            if vals: found[kind] = sorted(vals)
        names = {}
        ref = getattr(context, "reference_data", None)
        mitre = (ref.get("mitre_techniques") if ref is not None else None) or {}
        for t in found.get("technique", []):
            if t in mitre: names[t] = mitre[t]["name"]
        return ToolResult(True, {"indicators": found, "counts": {k: len(v) for k, v in found.items()}, "total": sum(map(len, found.values())), "technique_names": names})

    def summarize_for_llm(self, result):
        c = result.result["counts"]
        return "Indicators: " + (", ".join(f"{v} {k}" for k, v in c.items()) or "none")
