import json
import re

from shu_plugin_sdk import HttpRequestFailed

_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')


def next_link(headers):
    m = _NEXT.search((headers or {}).get("link", "") or "")
    return m.group(1) if m else None


def render(issue, comments):
    lines = ["# %s (#%s)" % (issue["title"], issue["number"]), "", "State: %s" % issue.get("state", "open")]
    labels = [l["name"] for l in issue.get("labels") or []]
    if labels:
        lines.append("Labels: " + ", ".join(labels))
    lines += ["", issue.get("body") or "(no description)"]
    for c in comments:
        lines += ["", "---", "%s wrote on %s:" % ((c.get("user") or {}).get("login", "ghost"), c.get("created_at")), c.get("body") or ""]
    return "\n".join(lines)


class Plugin:
    name = "issue_thread_sync"
    version = "0.9.1"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["sync"], "default": "sync"},
            "repo": {"type": "string", "pattern": "^[\\w.-]+/[\\w.-]+$", "x-ui": {"placeholder": "owner/name"}},
            "kb_id": {"type": "string"},
            "api_base": {"type": "string", "default": "https://api.github.com"},
            "max_pages": {"type": "integer", "minimum": 1, "maximum": 20},
        }, "required": ["repo", "kb_id"]}

    def get_output_schema(self):
        return None

    async def execute(self, params, context, host):
        token = await host.secrets.get("tracker_token")
        headers = {"Authorization": "Bearer %s" % token, "Accept": "application/vnd.github+json"}
        base = (params.get("api_base") or "https://api.github.com").rstrip("/")
        kb_id = params["kb_id"]
        since = await host.cursor.get(kb_id)
        query = {"state": "all", "sort": "updated", "direction": "asc"}
        if since:
            query["since"] = since
        url, pages, written, skips, watermark = "%s/repos/%s/issues" % (base, params["repo"]), 0, 0, [], since
        calls = 0
        while url and pages < (params.get("max_pages") or 5):
            try:
                page = await host.http.fetch("GET", url, headers=headers, params=query if pages == 0 else None)
            except HttpRequestFailed as e:
                if e.status_code == 410:
                    return {"status": "success", "data": {"written": 0, "issues_disabled": True}, "error": None,
                            "diagnostics": ["issues are disabled for this repository"]}
                raise
            calls += 1
            body = page["body"]
            if isinstance(body, str):
                body = json.loads(body)
            for issue in body:
                if "pull_request" in issue:
                    continue
                comments = []
                if issue.get("comments"):
                    got = await host.http.fetch_or_none("GET", issue["comments_url"], headers=headers)
                    calls += 1
                    if got is None:
                        skips.append({"id": str(issue["number"]), "name": issue["title"], "reason": "network"})
                    else:
                        comments = got["body"]
                r = await host.kb.ingest_thread(kb_id, title=issue["title"], content=render(issue, comments),
                                                thread_id="%s#%s" % (params["repo"], issue["number"]),
                                                source_url=issue.get("html_url"))
                if not r.get("skipped"):
                    written += 1
                if watermark is None or issue["updated_at"] > watermark:
                    watermark = issue["updated_at"]
            url = next_link(page["headers"])
            pages += 1
        if watermark and watermark != since:
            await host.cursor.set(kb_id, watermark)
        return {"status": "success", "data": {"written": written, "pages": pages, "watermark": watermark},
                "error": None, "skips": skips, "cost": {"api_calls": calls}, "next_cursor": watermark}
