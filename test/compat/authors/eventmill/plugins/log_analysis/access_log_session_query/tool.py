import sys
from collections import Counter
from framework.plugins.protocol import ToolResult, ValidationResult


def _store():
    return getattr(sys, "_acme_table_store", {})


class SessionQuery:
    def metadata(self):
        return {"tool_name": "access_log_session_query", "version": "1.0.0"}

    def validate_inputs(self, payload):
        t = payload.get("table")
        if not t:
            return ValidationResult(ok=False, errors=["table is required"])
        if t not in _store() and not payload.get("file_path"):
            return ValidationResult(ok=False, errors=[f"table {t} is not loaded; run access_log_session_store first"])
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        if payload["table"] not in _store():
            # convenience: load through the sibling's class, as the capture tools do
            from plugins.log_analysis.access_log_session_store.tool import SessionStore
            loaded = SessionStore().execute({"file_path": payload["file_path"], "table": payload["table"]}, None)
            if not loaded.ok:
                return loaded
        rows = _store()[payload["table"]]
        where = payload.get("where") or {}
        if isinstance(where, str):
            where = dict(p.split("=", 1) for p in where.split(",") if "=" in p)
        hit = [r for r in rows if all(r.get(k) == str(v) for k, v in where.items())]
        group = payload.get("group_by")
        return ToolResult(ok=True, result={"matched": len(hit), "of": len(rows), "rows": hit[:20],
                                           "groups": dict(Counter(r.get(group) for r in hit)) if group else None})

    def summarize_for_llm(self, result):
        r = result.result
        return f"{r['matched']} of {r['of']} rows." + (f" Groups: {r['groups']}" if r["groups"] else "")
