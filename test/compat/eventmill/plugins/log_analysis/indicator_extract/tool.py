"""Extracts indicators of compromise and names the techniques a text speaks of."""

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from framework.plugins.protocol import ValidationResult
from framework.reference_data.mitre_attack import get_mitre_db

PATTERNS = {
    "ipv4": re.compile(r"\b(?:\d{1,3}(?:\[\.\]|\.)){3}\d{1,3}\b"),
    "sha256": re.compile(r"\b[0-9a-fA-F]{64}\b"),
    "cve": re.compile(r"\bCVE-\d{4}-\d{4,7}\b"),
    "technique": re.compile(r"\bT\d{4}(?:\.\d{3})?\b"),
}


@dataclass
class ToolResult:
    ok: bool
    result: dict = field(default_factory=dict)
    error_code: str = None
    message: str = None


@dataclass
class Indicator:
    kind: str
    value: str
    count: int


class IndicatorExtract:
    def metadata(self):
        return {"tool_name": "indicator_extract", "version": "1.1.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=bool(payload.get("file_path")), errors=["file_path is required"])

    def execute(self, payload, context):
        path = Path(payload["file_path"])
        if path.stat().st_size > 10_000_000:
            return ToolResult(ok=False, error_code="FILE_TOO_LARGE", message="at most 10 MB")
        text = path.read_text(encoding="utf-8", errors="replace")
        found = []
        for kind, pattern in PATTERNS.items():
            values = [value.replace("[.]", ".") for value in pattern.findall(text)]
            found += [Indicator(kind, value, values.count(value)) for value in sorted(set(values))]
        techniques = get_mitre_db()
        named = {i.value: techniques.get(i.value, {}).get("name") for i in found if i.kind == "technique"}
        return ToolResult(ok=True, result={"indicators": [asdict(i) for i in found], "techniques": named})

    def summarize_for_llm(self, result):
        kinds = {}
        for indicator in result.result["indicators"]:
            kinds[indicator["kind"]] = kinds.get(indicator["kind"], 0) + 1
        return "Indicators: " + (", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) or "none") + "."
