"""Loads a table (CSV) once; access_log_session_query answers questions about it in the same session."""
import csv, os, sys
from framework.plugins.protocol import ToolResult, ValidationResult

KEY = "_acme_table_store"
if not hasattr(sys, KEY):
    setattr(sys, KEY, {})     # survives a second import of this file under another name
STORE = getattr(sys, KEY)


class SessionStore:
    def metadata(self):
        return {"tool_name": "access_log_session_store", "version": "1.0.0", "tables": sorted(STORE)}

    def validate_inputs(self, payload):
        e = [k + " is required" for k in ("file_path", "table") if not payload.get(k)]
        return ValidationResult(ok=not e, errors=e or None)

    def execute(self, payload, context=None):
        if not os.path.isfile(payload["file_path"]):
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="csv missing")
        with open(payload["file_path"], newline="") as fh:
            rows = list(csv.DictReader(fh))
        if not rows:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="no rows")
        replaced = payload["table"] in STORE
        STORE[payload["table"]] = rows
        return ToolResult(ok=True, result={"table": payload["table"], "rows": len(rows), "columns": list(rows[0]), "replaced": replaced})

    def summarize_for_llm(self, result):
        return "Table {table}: {rows} rows ({columns}).".format(**result.result)
