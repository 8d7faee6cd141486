"""Finds regular call-backs in a Zeek conn.log (JSON lines)."""
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stats import mad, median  # noqa: E402


@dataclass
class ValidationResult:
    ok: bool
    errors: list = field(default_factory=list)


@dataclass
class ToolResult:
    # a different field order than the host's own class
    ok: bool
    message: Optional[str] = None
    result: Optional[dict] = None
    error_code: Optional[str] = None


class BeaconDetector:
    def metadata(self):
        return {"tool_name": "zeek_beacon_detector", "version": "2.0.1"}

    def validate_inputs(self, payload):
        v = ValidationResult(True)
        if "artifact_id" not in payload and "file_path" not in payload:
            v.ok = False
            v.errors.append("one of artifact_id, file_path is required")
        j = payload.get("max_jitter", 0.1)
        if isinstance(j, str):
            try:
                j = float(j)
            except ValueError:
                v.ok = False
                v.errors.append("max_jitter is not a number")
                return v
        if not 0 <= j <= 1:
            v.ok = False
            v.errors.append("max_jitter must be within 0..1")
        return v

    @staticmethod
    def _path(payload, context):
        if payload.get("artifact_id"):
            for a in context.artifacts:
                if a.artifact_id == payload["artifact_id"]:
                    return a.file_path
        return payload.get("file_path")

    def execute(self, payload, context):
        path = self._path(payload, context)
        if not path or not os.path.exists(path):
            return ToolResult(False, "conn.log not found", error_code="ARTIFACT_NOT_FOUND")
        times = {}
        for no, line in enumerate(open(path), 1):
            if not line.strip():
                continue
            try:
                rec = json.loads(line)
                key = (rec["id.orig_h"], rec["id.resp_h"], int(rec["id.resp_p"]))
                times.setdefault(key, []).append(float(rec["ts"]))
            except (ValueError, KeyError, TypeError) as exc:
                return ToolResult(False, f"line {no}: {exc.__class__.__name__}", error_code="ARTIFACT_UNREADABLE")
        jitter = float(payload.get("max_jitter", 0.1))
        found = []
        for (src, dst, port), ts in sorted(times.items()):
            if len(ts) < int(payload.get("min_connections", 4)):
                continue
            ts.sort()
            gaps = [b - a for a, b in zip(ts, ts[1:])]
            mid = median(gaps)
            if mid <= 0:
                continue
            spread = mad(gaps) / mid
            if spread <= jitter:
                found.append({"src": src, "dst": dst, "port": port, "connections": len(ts),
                              "interval_seconds": round(mid, 3), "jitter": round(spread, 4)})
        found.sort(key=lambda f: f["jitter"])
        return ToolResult(True, None, {"pairs": len(times), "beacons": found, "beacon_count": len(found)})

    def summarize_for_llm(self, result):
        r = result.result
        if not r["beacons"]:
            return f"No beaconing among {r['pairs']} host pairs."
        b = r["beacons"][0]
        return f"{r['beacon_count']} beaconing pairs of {r['pairs']}; most regular {b['src']} -> {b['dst']}:{b['port']} every {b['interval_seconds']} s."
