from __future__ import annotations

import asyncio
import base64
from typing import Any, Dict, List

from shu_plugin_sdk import HttpRequestFailed, PluginResult

from .burndown import burndown

PAGE = 2


class SprintReport:
    name = "sprint_report"
    version = "1.4.0"

    def get_schema(self):
        return {"type": "object", "title": "Sprint report", "description": "Burndown and table of one sprint", "properties": {
            "op": {"type": "string", "enum": ["report"], "default": "report"},
            "sprint": {"type": "integer"},
            "start": {"type": "string", "format": "date"}, "end": {"type": "string", "format": "date"},
            "user": {"type": "string"},
            "site": {"type": "string", "default": "https://jira.example.com"},
            "output": {"type": "string", "enum": ["json", "markdown"], "x-ui": {"enum_labels": {"json": "Data", "markdown": "Text"}}},
        }, "required": ["sprint", "start", "end"]}

    def get_output_schema(self):
        return {"oneOf": [
            {"type": "object", "required": ["chart"], "properties": {"chart": {"type": "object", "required": ["labels"]}}},
            {"type": "object", "required": ["markdown"], "properties": {"markdown": {"type": "string"}}, "not": {"required": ["chart"]}},
        ]}

    async def _page(self, host, site, headers, sprint, start) -> Dict[str, Any]:
        for attempt in range(4):
            try:
                r = await host.http.fetch("GET", site + "/rest/agile/1.0/sprint/%d/issue" % sprint, headers=headers,
                                          params={"startAt": start, "maxResults": PAGE})
                return r["body"]
            except HttpRequestFailed as exc:
                wait = exc.retry_after_seconds
                if exc.status_code != 429 or attempt == 3:
                    raise
                await asyncio.sleep(min(wait if wait is not None else 1, 5))
        raise AssertionError("unreachable")

    async def execute(self, params, context, host):
        token = await host.secrets.get("jira_token")
        auth = base64.b64encode(("%s:%s" % (params.get("user") or "bot", token)).encode()).decode()
        site = (params.get("site") or "https://jira.example.com").rstrip("/")
        rows: List[Dict[str, Any]] = []
        calls = start = 0
        while True:
            page = await self._page(host, site, {"Authorization": "Basic " + auth}, params["sprint"], start)
            calls += 1
            for it in page["issues"]:
                f = it["fields"]
                rows.append({"key": it["key"], "summary": f["summary"], "points": f.get("points") or 0,
                             "who": (f.get("assignee") or {}).get("displayName", "unassigned"), "done_on": (f.get("resolutiondate") or "")[:10] or None})
            start += len(page["issues"])
            if start >= page["total"] or not page["issues"]:
                break
        if not rows:
            return PluginResult.err("the sprint has no issues", code="empty_sprint")
        chart = burndown(rows, params["start"], params["end"])
        if params.get("output") == "markdown":
            md = ["# Sprint %d" % params["sprint"], "", "| Issue | Who | Points | Done |", "|---|---|---|---|"]
            md += ["| %s %s | %s | %s | %s |" % (r["key"], r["summary"].replace("|", "\\|"), r["who"], r["points"], r["done_on"] or "-") for r in rows]
            md.append("")
            md.append("%s of %s points left" % (chart["actual"][-1], chart["total"]))
            return PluginResult.ok({"markdown": "\n".join(md)}, cost={"api_calls": calls})
        return PluginResult.ok({"chart": chart, "issues": rows, "calls": calls}, cost={"api_calls": calls},
                               citations=[{"type": "issue", "ref": r["key"], "label": r["summary"]} for r in rows])
