import json, pathlib
from framework.plugins.protocol import *   # noqa: F403
from framework.plugins.protocol import ToolResult, ValidationResult

def flatten(o, prefix="", depth=0):
    if isinstance(o, dict) and depth < 6:
        for k, v in o.items(): yield from flatten(v, f"{prefix}.{k}" if prefix else k, depth + 1)
    else: yield prefix, o

class JsonlFieldProfiler:
    def metadata(self): return dict(tool_name="jsonl_field_profiler", version="1.0.0")
    def validate_inputs(self, payload):
        ok = bool(payload.get("file_path"))
        return ValidationResult(ok, None if ok else ["file_path required"])
    def execute(self, payload, context):
        max_lines = int(context.config.get("profiler_max_lines", 100000))
        try: fh = pathlib.Path(payload["file_path"]).open(encoding="utf-8")
        except FileNotFoundError: return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="missing")
        stats, n, bad = {}, 0, 0
        with fh:
            for line in fh:
                if n + bad >= max_lines: break
                if not line.strip(): continue
                try: rec = json.loads(line)
                except ValueError: bad += 1; continue
                n += 1
                for key, val in flatten(rec):
                    s = stats.setdefault(key, {"count": 0, "types": {}, "values": set(), "example": val})
                    s["count"] += 1
                    t = type(val).__name__; s["types"][t] = s["types"].get(t, 0) + 1
                    if len(s["values"]) < 1000: s["values"].add(json.dumps(val, sort_keys=True))
        if not n: return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="not a single JSON line", details={"bad_lines": bad})
        fields = {k: {"fill": round(s["count"] / n, 3), "types": s["types"], "distinct": len(s["values"]), "example": s["example"]} for k, s in sorted(stats.items())}
        return ToolResult(ok=True, result={"records": n, "bad_lines": bad, "fields": fields, "key_candidates": [k for k, f in fields.items() if f["fill"] == 1 and f["distinct"] == n]})
    def summarize_for_llm(self, result):
        f = result.result["fields"]
        return f"{result.result['records']} records, {len(f)} fields: " + ", ".join(list(f)[:25])
