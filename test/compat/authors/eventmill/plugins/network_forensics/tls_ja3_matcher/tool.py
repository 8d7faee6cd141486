from __future__ import annotations
import csv, hashlib, json, re
from functools import lru_cache
from pathlib import Path
from dataclasses import dataclass, field
from typing import Any

HERE = Path(__file__).parent
MD5 = re.compile(r"^[0-9a-f]{32}$")
JA3 = re.compile(r"^\d+,[\d-]*,[\d-]*,[\d-]*,[\d-]*$")
RISK = {"high": 3, "medium": 2, "low": 1}


@dataclass
class Outcome:
    ok: bool
    errors: list[str] | None = None


@dataclass
class Result:
    ok: bool
    result: dict[str, Any] | None = None
    error_code: str | None = None
    message: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    output_artifacts: list[dict] = field(default_factory=list)


@lru_cache(maxsize=1)
def builtin() -> dict:
    d = json.loads((HERE / "data" / "ja3_known.json").read_text())
    return {k: v for k, v in d.items() if not k.startswith("_")}


class TlsJa3Matcher:
    def __init__(self):
        self._manifest = json.loads((HERE / "manifest.json").read_text())

    def metadata(self):
        m = {k: self._manifest[k] for k in ("tool_name", "version", "pillar", "stability")}
        m["known_fingerprints"] = len(builtin())
        return m

    def validate_inputs(self, payload):
        fps = payload.get("fingerprints")
        if isinstance(fps, str):
            fps = [x for x in re.split(r"[\s;]+", fps) if x]
        if not fps and not payload.get("file_path"):
            return Outcome(False, ["give fingerprints or file_path"])
        errors = [f"not a JA3 string or MD5: {str(f)[:60]}" for f in fps or [] if not (MD5.match(str(f).lower()) or JA3.match(str(f)))]
        return Outcome(not errors, errors or None)

    def _known(self, context):
        table = dict(builtin())
        ref = getattr(context, "reference_data", None)
        extra = ref.get("ja3_known") if ref is not None else None
        if isinstance(extra, dict):
            table.update(extra)
        return table

    def execute(self, payload, context):
        fps = payload.get("fingerprints") or []
        if isinstance(fps, str):
            fps = [x for x in re.split(r"[\s;]+", fps) if x]
        if payload.get("file_path"):
            p = Path(payload["file_path"])
            if not p.is_file():
                return Result(False, error_code="ARTIFACT_NOT_FOUND", message=p.name)
            rows = list(csv.reader(p.read_text().splitlines(), delimiter="\t"))
            fps = fps + [c for r in rows for c in r if MD5.match(c) or JA3.match(c)]
            if not fps:
                return Result(False, error_code="ARTIFACT_UNREADABLE", message="no fingerprints in file", details={"rows": len(rows)})
        table = self._known(context)
        hits, unknown = [], []
        for f in dict.fromkeys(fps):
            digest = f.lower() if MD5.match(f.lower()) else hashlib.md5(f.encode()).hexdigest()
            if digest in table:
                hits.append({"ja3": digest, **table[digest]})
            else:
                unknown.append(digest)
        hits.sort(key=lambda h: -RISK.get(h.get("risk"), 0))
        return Result(True, {"checked": len(hits) + len(unknown), "matches": hits, "unknown": unknown, "worst": hits[0]["risk"] if hits else None})

    def summarize_for_llm(self, result):
        r = result.result
        return f"JA3: {r['checked']} fingerprints, {len(r['matches'])} known" + (f", worst risk {r['worst']} ({r['matches'][0]['label']})." if r["matches"] else ".")
