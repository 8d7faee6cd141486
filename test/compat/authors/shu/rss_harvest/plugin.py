from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, Optional

from shu_plugin_sdk import IngestionResult, PluginResult, Skip, SkipReason

from .feedparse import FeedError, parse, parse_when


class RssHarvestPlugin:
    name = "rss_harvest"
    version = "1.2.0"

    def get_schema(self) -> Optional[Dict[str, Any]]:
        return {
            "type": "object",
            "title": "RSS harvester",
            "description": "Reads a feed and stores new entries.",
            "properties": {
                "op": {"type": "string", "enum": ["ingest", "preview"], "default": "ingest",
                       "x-ui": {"enum_labels": {"ingest": "Ingest entries", "preview": "Preview"},
                                "enum_help": {"ingest": "Writes each new entry into the Knowledge Base.",
                                              "preview": "Lists entries, writes nothing."}}},
                "feed_url": {"type": "string", "minLength": 8, "x-ui": {"help": "Address of the RSS or Atom document"}},
                "kb_id": {"type": ["string", "null"], "x-ui": {"hidden": True}},
                "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50},
            },
            "required": ["op", "feed_url"],
        }

    def get_output_schema(self) -> Optional[Dict[str, Any]]:
        return {
            "type": "object",
            "properties": {
                "ingested": {"type": "integer"},
                "seen": {"type": "integer"},
                "cursor": {"type": ["string", "null"]},
                "entries": {"type": "array", "items": {"type": "object", "required": ["title"]}},
            },
            "required": ["seen"],
        }

    async def execute(self, params, context, host):
        answer = await host.http.fetch("GET", params["feed_url"], headers={"Accept": "application/rss+xml, application/atom+xml"})
        body = answer["body"]
        if isinstance(body, bytes):
            body = body.decode("utf-8", "replace")
        try:
            entries = parse(body if isinstance(body, str) else "")
        except FeedError as exc:
            return PluginResult.err(str(exc), code="invalid_feed")
        limit = params.get("limit") or 50
        if params["op"] == "preview":
            rows = [{"title": e.title, "link": e.link, "published": e.published.isoformat() if e.published else None}
                    for e in entries[:limit]]
            return PluginResult.ok({"seen": len(entries), "entries": rows})
        kb_id = params.get("kb_id")
        if not kb_id:
            return PluginResult.err("kb_id is required to ingest", code="missing_kb")
        return await self._ingest(entries, limit, kb_id, host)

    async def _ingest(self, entries, limit, kb_id, host):
        mark = parse_when(await host.cursor.get(kb_id))
        newest: Optional[datetime] = mark
        done, skips = 0, []
        for e in sorted(entries, key=lambda x: x.published.timestamp() if x.published else 0.0):
            if mark and e.published and e.published <= mark:
                continue
            if done >= limit:
                break
            if not e.text:
                skips.append(Skip(id=e.guid, name=e.title, reason=SkipReason.EMPTY_EXTRACTION))
                continue
            got = await host.kb.ingest_text(kb_id, title=e.title, content=e.text, source_id=e.guid, source_url=e.link,
                                            attributes={"source_hash": e.digest,
                                                        "modified_at": e.published.isoformat() if e.published else None})
            if not (got or {}).get("skipped"):
                done += 1
            if e.published and (newest is None or e.published > newest):
                newest = e.published
        if newest is not None and newest != mark:
            await host.cursor.set_safe(kb_id, newest.isoformat())
        host.log.info("rss ingest finished", extra={"count": done})
        return IngestionResult.ok({"ingested": done, "seen": len(entries), "cursor": newest.isoformat() if newest else None}, skips)
