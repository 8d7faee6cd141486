import re
from collections import Counter
from dataclasses import dataclass, asdict
from pathlib import Path

RX = re.compile(r'(?P<owner>\S+) (?P<bucket>\S+) \[(?P<time>[^\]]+)\] (?P<ip>\S+) (?P<requester>\S+) (?P<rid>\S+) (?P<op>\S+) (?P<key>\S+) "(?P<uri>[^"]*)" (?P<status>\d{3}|-) (?P<err>\S+) (?P<bytes>\d+|-)')


@dataclass
class _R:
    ok: bool
    result: object = None
    error_code: object = None
    message: object = None


class S3Stats:
    tool_name = "s3_access_log_stats"

    def metadata(self):
        return {"tool_name": self.tool_name, "version": "0.3.0-beta.1"}

    def validate_inputs(self, payload):
        errs = [] if payload.get("file_path") else ["file_path is required"]

        class V:
            ok = not errs
            errors = errs
        return V()

    def execute(self, payload, context):
        p = Path(payload["file_path"])
        lines = p.read_text().splitlines()  # FileNotFoundError reaches the framework
        ops, anon, errors, volume, skipped = Counter(), Counter(), Counter(), 0, 0
        for ln in lines:
            m = RX.match(ln)
            if not m:
                skipped += 1
                continue
            ops[m["op"]] += 1
            if m["requester"] == "-":
                anon[m["key"]] += 1
            if m["err"] != "-":
                errors[m["err"]] += 1
            volume += 0 if m["bytes"] == "-" else int(m["bytes"])
        if lines and skipped == len(lines):
            return _R(False, error_code="ARTIFACT_UNREADABLE", message="no S3 access log lines")
        return _R(True, {"requests": sum(ops.values()), "operations": dict(ops), "anonymous_keys": dict(anon), "errors": dict(errors), "bytes": volume, "skipped": skipped})

    def summarize_for_llm(self, result):
        r = result.result
        return "S3 log: %(requests)s requests, %(bytes)s bytes." % r + (" Anonymous access to %d keys!" % len(r["anonymous_keys"]) if r["anonymous_keys"] else "")
