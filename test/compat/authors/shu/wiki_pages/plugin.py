from __future__ import annotations

import fnmatch
import hashlib
from collections import deque
from typing import Any, Dict
from urllib.parse import urlsplit

from shu_plugin_sdk import HttpRequestFailed, IngestionResult, PluginResult, Skip, SkipReason

from .html_text import read, same_site


class WikiPages:
    name = "wiki_pages"
    version = "2.2.0"

    def get_schema(self):
        return {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["crawl", "extract"], "default": "crawl",
                       "x-ui": {"enum_labels": {"crawl": "Crawl and store", "extract": "Show the text of one page"},
                                "enum_help": {"crawl": "Follows links on the same site.", "extract": "Stores nothing."}}},
                "start": {"type": "string", "pattern": "^https?://", "x-ui": {"help": "First page"}},
                "max_pages": {"type": "integer", "minimum": 1, "maximum": 200, "default": 20},
                "include": {"type": ["array", "null"], "items": {"type": "string"}, "x-ui": {"help": "Path patterns, such as /docs/*"}},
                "auth_header": {"type": "boolean", "default": False, "x-ui": {"help": "Send the stored wiki token"}},
                "kb_id": {"type": ["string", "null"], "x-ui": {"hidden": True}},
            },
            "required": ["op", "start"],
        }

    def get_output_schema(self):
        return {"type": "object", "properties": {
            "stored": {"type": "integer", "minimum": 0}, "unchanged": {"type": "integer", "minimum": 0},
            "text": {"type": "string"}, "title": {"type": ["string", "null"]}, "links": {"type": "array", "items": {"type": "string"}}}}

    async def _headers(self, params, host) -> Dict[str, str]:
        h = {"Accept": "text/html"}
        if params.get("auth_header"):
            token = await host.secrets.get("wiki_token")
            if token:
                h["Authorization"] = "Bearer " + token
        return h

    async def execute(self, params: Dict[str, Any], context, host):
        headers = await self._headers(params, host)
        if params["op"] == "extract":
            r = await host.http.fetch("GET", params["start"], headers=headers)
            if not isinstance(r["body"], str):
                return PluginResult.err("not a text page", code="unsupported_format")
            page = read(r["body"], params["start"])
            return PluginResult.ok({"title": page.title, "text": page.text(), "links": sorted(set(page.links))})
        if not params.get("kb_id"):
            return PluginResult.err("kb_id is required to crawl", code="missing_kb")
        return await self._crawl(params, host, headers)

    def _wanted(self, url, params):
        pats = params.get("include")
        return not pats or any(fnmatch.fnmatch(urlsplit(url).path, p) for p in pats)

    async def _crawl(self, params, host, headers):
        kb, start = params["kb_id"], params["start"]
        ns = "etag:" + hashlib.sha1(start.encode()).hexdigest()[:12]
        etags = await host.storage.get("pages", namespace=ns) or {}
        queue, seen, skips = deque([start]), {start}, []
        stored = unchanged = calls = 0
        while queue and calls < (params.get("max_pages") or 20):
            url = queue.popleft()
            h = dict(headers)
            if url in etags:
                h["If-None-Match"] = etags[url]["etag"]
            calls += 1
            try:
                r = await host.http.fetch("GET", url, headers=h)
            except HttpRequestFailed as exc:
                if url == start:
                    raise
                reason = SkipReason.AUTH if exc.status_code in (401, 403) else SkipReason.NETWORK
                skips.append(Skip(id=url, reason=reason, details={"status": exc.status_code}))
                continue
            if r["status_code"] == 304:
                unchanged += 1
                links = etags[url]["links"]
            else:
                ctype = r["headers"].get("content-type", "")
                if "html" not in ctype:
                    skips.append(Skip(id=url, reason=SkipReason.UNSUPPORTED_FORMAT, details={"content_type": ctype}))
                    continue
                page = read(r["body"], url)
                links = [u for u in dict.fromkeys(page.links) if same_site(u, start)]
                text = page.text()
                if page.noindex or not text:
                    skips.append(Skip(id=url, name=page.title, reason=SkipReason.EMPTY_EXTRACTION if not text else SkipReason.OTHER))
                else:
                    got = await host.kb.ingest_text(kb, title=page.title or url, content=text, source_id=url, source_url=url,
                                                    attributes={"source_hash": hashlib.sha256(text.encode()).hexdigest()})
                    if got.get("skipped"):
                        unchanged += 1
                    else:
                        stored += 1
                if r["headers"].get("etag"):
                    etags[url] = {"etag": r["headers"]["etag"], "links": links}
            for u in links:
                if u not in seen and self._wanted(u, params):
                    seen.add(u)
                    queue.append(u)
        try:
            await host.storage.put("pages", etags, namespace=ns)
        except ValueError:
            await host.storage.delete("pages", namespace=ns)      # too many pages to remember
        await host.cursor.set_safe(kb, str(len(seen)))
        return IngestionResult.ok({"stored": stored, "unchanged": unchanged, "skipped": [s.id for s in skips], "left": len(queue)}, skips, cost={"api_calls": calls})
