#!/usr/bin/env python3
"""Apply.EmailDraft - writes a reviewed draft into funding_emails (a JSON table here). Gated by a human."""
from __future__ import annotations
import fcntl
import json
import pathlib
import sys
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Iterator

NAME, VERSION = "Apply.EmailDraft", "2.0.0"
DEFAULT_STATE = pathlib.Path(__file__).resolve().parent / "state"


class OperatorError(Exception):
    code = "OPERATOR_ERROR"


class Invalid(OperatorError):
    code = "VALIDATION_ERROR"


class Denied(OperatorError):
    code = "POLICY_DENIED"


class Conflict(OperatorError):
    code = "VERSION_CONFLICT"


@contextmanager
def table(root: pathlib.Path) -> Iterator[dict[str, Any]]:
    root.mkdir(parents=True, exist_ok=True)
    path = root / "funding_emails.json"
    with open(path, "a+") as fh:
        fcntl.flock(fh, fcntl.LOCK_EX)
        fh.seek(0)
        data = json.loads(fh.read() or '{"rows": {}, "idempotency": {}}')
        yield data
        fh.seek(0)
        fh.truncate()
        json.dump(data, fh)


def principal(auth: dict) -> Any:
    return auth["principal"]["id"] if isinstance(auth.get("principal"), dict) else auth.get("principal_id")


def check(inp: dict) -> dict:
    p = inp.get("payload")
    if not isinstance(p, dict):
        raise Invalid("payload must be an object")
    for field, kind in (("request_id", int), ("subject", str), ("body", str)):
        if not isinstance(p.get(field), kind) or isinstance(p.get(field), bool):
            raise Invalid(f"payload.{field} must be {kind.__name__}")
    if not inp.get("idempotency_key"):
        raise Invalid("idempotency_key is required")
    auth = inp.get("auth_context") or {}
    if "email:apply" not in auth.get("scopes", ()):
        raise Denied("scope email:apply is required")
    if (inp.get("policy_snapshot") or {}).get("freeze"):
        raise Denied("policy freeze")
    return p


def execute(inp: dict, root: pathlib.Path) -> dict:
    p, auth = check(inp), inp["auth_context"]
    with table(root) as t:
        ikey = f"{auth['tenant_id']}|{NAME}|{inp['idempotency_key']}"
        if ikey in t["idempotency"]:
            return t["idempotency"][ikey]
        rkey = f"{auth['tenant_id']}:{p['request_id']}"
        row = t["rows"].get(rkey, {"revision": 0})
        if p.get("expected_revision") not in (None, row["revision"]):
            raise Conflict(f"revision is {row['revision']}, expected {p['expected_revision']}")
        row = {"revision": row["revision"] + 1, "subject": p["subject"], "body": p["body"], "by": principal(auth), "at": datetime.now(timezone.utc).isoformat(timespec="seconds")}
        t["rows"][rkey] = row
        res = {"status": "succeeded", "result": {"schema_version": "2.0", "request_id": p["request_id"], "revision": row["revision"], "applied_by": row["by"]}, "artifacts": [{"type": "db_row", "path": f"funding_emails/{rkey}", "hash": None}],
               "metrics": {"latency_ms": 1}, "error": None, "nondeterminism": {"is_nondeterministic": False, "reasons": [], "stability": "high"}}
        t["idempotency"][ikey] = res
        return res


def serve(stdin=sys.stdin, stdout=sys.stdout) -> int:
    for line in stdin:
        msg = json.loads(line)
        if msg.get("type") == "handshake":
            reply = {"type": "handshake", "manifest": {"plugin_id": NAME, "plugin_version": VERSION, "protocol_version": msg.get("protocol_version"), "exposed_tools": [NAME], "capabilities": []}}
        else:
            root = (msg.get("context") or {}).get("repo_root")
            try:
                out = execute(msg.get("input") or {}, pathlib.Path(root) / ".apply_draft" if root else DEFAULT_STATE)
            except OperatorError as exc:
                out = {"status": "failed", "result": None, "artifacts": [], "metrics": {}, "error": {"code": exc.code, "message": str(exc)}, "nondeterminism": {"is_nondeterministic": False}}
            reply = {"type": "response", "request_id": msg["request_id"], "status": "ok", "output": out, "metadata": {}}
        stdout.write(json.dumps(reply) + "\n")
        stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(serve())
