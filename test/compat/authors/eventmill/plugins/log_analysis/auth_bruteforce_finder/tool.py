"""Failed ssh logins followed by a success, from auth.log."""
import re, os
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Dict, List, Optional

FAIL = re.compile(r"^(\w{3}\s+\d+ \d\d:\d\d:\d\d) (\S+) sshd\[\d+\]: Failed (?:password|publickey) for (?:invalid user )?(\S+) from (\S+)")
GOOD = re.compile(r"^(\w{3}\s+\d+ \d\d:\d\d:\d\d) (\S+) sshd\[\d+\]: Accepted \S+ for (\S+) from (\S+)")

@dataclass
class ToolResult:
    ok: bool
    result: Optional[Dict[str, Any]] = None
    error_code: Optional[str] = None
    message: Optional[str] = None
    details: Optional[Dict[str, Any]] = None
    output_artifacts: Optional[List[Dict[str, Any]]] = None

@dataclass
class ValidationResult:
    ok: bool
    errors: Optional[List[str]] = None

def num(payload, key, default):
    value = payload.get(key, default)
    if isinstance(value, bool): raise ValueError(key)   # `--threshold` without a value
    return int(value)

class AuthBruteforceFinder:
    def metadata(self) -> Dict[str, Any]:
        return {"tool_name": "auth_bruteforce_finder", "version": "3.0.0"}

    def validate_inputs(self, payload):
        errors = []
        for key, default in (("threshold", 5), ("window_minutes", 10), ("year", 2026)):
            try:
                if num(payload, key, default) <= 0: errors.append(f"{key} must be positive")
            except (TypeError, ValueError):
                errors.append(f"{key} must be a whole number")
        if not (payload.get("file_path") or payload.get("text")): errors.append("file_path or text required")
        return ValidationResult(not errors, errors or None)

    def execute(self, payload, context):
        if payload.get("text"):
            lines = payload["text"].splitlines()
        elif os.path.isfile(payload["file_path"]):
            with open(payload["file_path"], errors="replace") as fh: lines = fh.readlines()
        else:
            return ToolResult(False, None, "ARTIFACT_NOT_FOUND", "auth log missing")
        year, thr = num(payload, "year", 2026), num(payload, "threshold", 5)
        window = timedelta(minutes=num(payload, "window_minutes", 10))
        when = lambda t: datetime.strptime(f"{year} {' '.join(t.split())}", "%Y %b %d %H:%M:%S")
        fails, users, success = {}, {}, []
        for l in lines:
            m = FAIL.match(l)
            if m:
                fails.setdefault(m[4], []).append(when(m[1])); users.setdefault(m[4], set()).add(m[3]); continue
            m = GOOD.match(l)
            if m and any(when(m[1]) - f <= window for f in fails.get(m[4], [])):
                success.append({"ip": m[4], "user": m[3], "time": when(m[1]).isoformat()})
        attackers = []
        for ip, ts in fails.items():
            best = max(sum(1 for u in ts if timedelta(0) <= u - t <= window) for t in ts)
            if best >= thr:
                attackers.append({"ip": ip, "failures": len(ts), "peak": best, "users": sorted(users[ip]), "spraying": len(users[ip]) >= 3})
        attackers.sort(key=lambda a: -a["peak"])
        return ToolResult(True, {"failures": sum(map(len, fails.values())), "attackers": attackers, "successes_after_failure": success})

    def summarize_for_llm(self, result):
        r = result.result
        if not r["attackers"]: return f"{r['failures']} failed logins, no source over the threshold."
        return f"{len(r['attackers'])} brute force sources; top {r['attackers'][0]['ip']} ({r['attackers'][0]['peak']} in the window). {len(r['successes_after_failure'])} successes after failures."
