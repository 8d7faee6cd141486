from __future__ import annotations

from urllib.parse import quote

from shu_plugin_sdk import PluginResult

from .table import TableError, check_range, pivot, records, to_csv


class SheetsExport:
    name = "sheets_export"
    version = "1.2.0"

    def get_schema(self):
        both = {"field": "op", "in": ["export", "pivot"]}
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["export", "pivot", "offline_pivot"],
                   "x-ui": {"enum_labels": {"export": "Export to knowledge base", "pivot": "Pivot", "offline_pivot": "Pivot pasted rows"}}},
            "spreadsheet": {"type": "string", "x-ui": {"show_when": both}},
            "range": {"type": "string", "x-ui": {"show_when": both, "placeholder": "Sheet1!A1:D50"}},
            "rows": {"type": "array", "items": {"type": "array"}, "x-ui": {"show_when": {"op": "offline_pivot"}}},
            "by": {"type": "string"}, "value": {"type": "string"}, "how": {"type": "string", "enum": ["sum", "max", "count", "mean"]},
            "kb_id": {"type": "string", "x-ui": {"hidden": True}}, "endpoint": {"type": "string", "x-ui": {"hidden": True}}},
            "required": ["op"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"chart": {"type": "object"}, "rows": {"type": "integer"}, "as": {"type": ["string", "null"]}}}

    async def _values(self, params, host):
        cells = check_range(params.get("range") or "")
        try:
            token, target = await host.auth.resolve_token_and_target("google")
        except RuntimeError as exc:
            return None, None, PluginResult.err("delegation is not set up: %s" % exc, code="delegation_incomplete")
        if not token:
            return None, None, PluginResult.err("no Google token", code="auth_required")
        r = await host.http.fetch("GET", "%s/v4/spreadsheets/%s/values/%s" % (
            params.get("endpoint") or "https://sheets.googleapis.com", quote(params.get("spreadsheet") or "", safe=""), quote(cells, safe="!:")),
            headers={"Authorization": "Bearer " + token})
        return r["body"].get("values") or [], target, None

    async def execute(self, params, context, host):
        try:
            if params["op"] == "offline_pivot":
                values, target = params.get("rows") or [], None
            else:
                values, target, problem = await self._values(params, host)
                if problem is not None:
                    return problem
            rows = records(values)
            if params["op"] == "export":
                return await self._export(params, host, rows, target)
            table, bad = pivot(rows, params.get("by") or "", params.get("value") or "", params.get("how") or "sum")
        except TableError as exc:
            return PluginResult.err(str(exc), code=exc.code)
        return PluginResult.ok({"rows": len(rows), "ignored": bad, "as": target,
                                "chart": {"kind": "bar", "labels": list(table), "values": list(table.values())}})

    async def _export(self, params, host, rows, target):
        if not params.get("kb_id"):
            return PluginResult.err("kb_id is missing", code="missing_kb")
        if not rows:
            return PluginResult.err("header only", code="no_rows")
        text = to_csv(rows)
        doc = await host.kb.ingest_document(params["kb_id"], file_bytes=text.encode("utf-8"), filename="%s.csv" % params["spreadsheet"], mime_type="text/csv",
                                            source_id="%s!%s" % (params["spreadsheet"], params["range"]))
        await host.storage.put("last:" + params["spreadsheet"], {"rows": len(rows)})
        return PluginResult.ok({"rows": len(rows), "as": target, "document": bool(doc.get("document_id"))})
