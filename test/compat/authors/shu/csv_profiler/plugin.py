from __future__ import annotations

import csv
import io
import math
import statistics
from collections import Counter
from datetime import date

from shu_plugin_sdk import PluginResult

from .report import KeyProblem, by_key, compare, infer, markdown


def _kind(values):
    seen = set()
    for v in values:
        try:
            int(v)
            seen.add("integer")
            continue
        except ValueError:
            pass
        try:
            f = float(v)
            seen.add("number" if math.isfinite(f) else "text")
            continue
        except ValueError:
            pass
        try:
            date.fromisoformat(v)
            seen.add("date")
        except ValueError:
            return "text"
    if not seen:
        return "empty"
    if seen <= {"integer"}:
        return "integer"
    if seen <= {"integer", "number"}:
        return "number"
    return seen.pop() if len(seen) == 1 else "text"


def profile_column(name, values):
    filled = [v for v in values if v != ""]
    kind = _kind(filled)
    col = {"name": name, "type": kind, "missing": len(values) - len(filled), "distinct": len(set(filled))}
    if kind in ("integer", "number"):
        nums = [float(v) for v in filled]
        col.update(min=min(nums), max=max(nums), mean=round(statistics.fmean(nums), 4),
                   stdev=round(statistics.stdev(nums), 4) if len(nums) > 1 else 0.0)
    elif kind == "date":
        col.update(first=min(filled), last=max(filled))
    elif filled:
        col["top"] = [[k, n] for k, n in Counter(filled).most_common(3)]
    return col


def histogram(nums, bins):
    lo, hi = min(nums), max(nums)
    if lo == hi:
        return {"labels": ["%g" % lo], "counts": [len(nums)]}
    width = (hi - lo) / bins
    counts = [0] * bins
    for n in nums:
        counts[min(int((n - lo) / width), bins - 1)] += 1
    return {"labels": ["%g-%g" % (lo + i * width, lo + (i + 1) * width) for i in range(bins)], "counts": counts}


class CsvProfiler:
    name = "csv_profiler"
    version = "1.0"

    def get_schema(self):
        return {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["profile", "chart", "report", "diff", "schema"]},
                "csv": {"type": "string", "minLength": 1, "x-ui": {"help": "The table, first row is the header"}},
                "delimiter": {"type": ["string", "null"], "maxLength": 1, "x-ui": {"placeholder": "Detect"}},
                "column": {"type": "string", "x-ui": {"show_when": {"field": "op", "in": ["chart"]}}},
                "other": {"type": "string", "x-ui": {"show_when": {"op": "diff"}, "help": "The newer table"}},
                "key": {"type": "string", "x-ui": {"show_when": {"op": "diff"}}},
                "title": {"type": "string", "x-ui": {"show_when": {"op": "report"}}},
                "bins": {"type": "integer", "minimum": 1, "maximum": 50},
            },
            "required": ["op", "csv"],
        }

    def get_output_schema(self):
        return {"type": "object", "properties": {
            "rows": {"type": "integer"},
            "columns": {"type": "array", "items": {"type": "object", "required": ["name", "type"], "properties": {
                "type": {"enum": ["integer", "number", "date", "text", "empty"]}}}},
            "chart": {"type": "object"}}}

    async def execute(self, params, context, host):
        text = params["csv"].lstrip("\ufeff")
        delim = params.get("delimiter")
        if not delim:
            try:
                delim = csv.Sniffer().sniff(text[:4096], delimiters=",;\t|").delimiter
            except csv.Error:
                delim = ","
        table = [r for r in csv.reader(io.StringIO(text), delimiter=delim) if r]
        if len(table) < 2:
            return PluginResult.err("the table has no data rows", code="empty_table")
        head, rows = table[0], table[1:]
        ragged = [i for i, r in enumerate(rows, 2) if len(r) != len(head)]
        if ragged:
            return PluginResult.err("rows with a different width", code="ragged_rows", details={"lines": ragged[:20]})
        if params["op"] == "diff":
            return self._diff(params, head, rows, delim)
        cols = {h: [r[i].strip() for r in rows] for i, h in enumerate(head)}
        if params["op"] == "profile":
            return PluginResult.ok({"rows": len(rows), "delimiter": delim, "columns": [profile_column(k, v) for k, v in cols.items()]})
        if params["op"] == "schema":
            return PluginResult.ok({"rows": len(rows), "schema": infer([profile_column(k, v) for k, v in cols.items()], cols)})
        if params["op"] == "report":
            profiles = [profile_column(k, v) for k, v in cols.items()]
            charts = {p["name"]: histogram([float(v) for v in cols[p["name"]] if v], params.get("bins") or 8)
                      for p in profiles if p["type"] in ("integer", "number")}
            return PluginResult.ok({"rows": len(rows), "markdown": markdown(params.get("title") or "Table", len(rows), profiles, charts)})
        name = params.get("column")
        if name not in cols:
            return PluginResult.err("no column %r" % name, code="unknown_column")
        filled = [v for v in cols[name] if v]
        if _kind(filled) in ("integer", "number"):
            return PluginResult.ok({"chart": dict(kind="histogram", **histogram([float(v) for v in filled], params.get("bins") or 5))})
        top = Counter(filled).most_common(20)
        return PluginResult.ok({"chart": {"kind": "bar", "labels": [k for k, _ in top], "counts": [n for _, n in top]}})

    @staticmethod
    def _diff(params, head, rows, delim):
        if not params.get("other") or not params.get("key"):
            return PluginResult.err("diff needs other and key", code="missing_parameter")
        newer = [r for r in csv.reader(io.StringIO(params["other"].lstrip("\ufeff")), delimiter=delim) if r]
        if not newer or any(len(r) != len(newer[0]) for r in newer):
            return PluginResult.err("the newer table is ragged or empty", code="ragged_rows")
        try:
            result = compare(by_key(head, rows, params["key"]), by_key(newer[0], newer[1:], params["key"]))
        except KeyProblem as exc:
            return PluginResult.err(str(exc), code="bad_key")
        result["rows"] = len(rows)
        return PluginResult.ok(result)
