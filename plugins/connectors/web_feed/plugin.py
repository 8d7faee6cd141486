"""Take the entries of an RSS 2.0 or Atom feed into a knowledge base, and look at a feed."""

from shu_plugin_sdk import HttpRequestFailed, PluginResult, Skip, SkipReason

from .cursor import Cursor
from .feed import Malformed, parse, short

MAX_DOCUMENT = 4 << 20
MAX_TEXT = 500_000  # characters of an entry
ACCEPT = "application/atom+xml, application/rss+xml, application/xml;q=0.9, text/xml;q=0.9"


class WebFeed:
    """One document a run: conditional, bounded, and known again entry by entry."""

    def get_schema(self):
        return {
            "type": "object",
            "title": "Web feed",
            "description": "Read an RSS 2.0 or Atom feed.",
            "properties": {"op": {"type": "string", "enum": ["ingest", "peek"]}, **_URL},
            "required": ["url"],
        }

    def get_schema_for_op(self, op):
        if op == "peek":
            return {
                "type": "object",
                "title": "Look at a feed",
                "description": "List the entries of a feed, the newest first, and keep nothing.",
                "properties": {**_URL, "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}},
                "required": ["url"],
            }
        return {
            "type": "object",
            "title": "Take a feed in",
            "description": "Take what is new or changed in a feed into a knowledge base.",
            "properties": {
                **_URL,
                "kb_id": {"type": "string", "minLength": 1, "title": "Knowledge base"},
                "max_items": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 500,
                    "default": 100,
                    "title": "Entries a run",
                    "x-ui": {"help": "What is left waits for the next run."},
                },
                "reset_cursor": {"type": ["boolean", "null"], "x-ui": {"hidden": True}},
            },
            "required": ["url", "kb_id"],
        }

    def get_output_schema(self):
        count = {"type": "integer", "minimum": 0}
        return {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "not_modified": {"type": "boolean"},
                "entries": {"type": "array", "items": {"type": "object"}},
                **{name: count for name in ("found", "ingested", "unchanged", "skipped", "waiting")},
            },
        }

    async def execute(self, params, context, host):
        try:
            if params["op"] == "peek":
                return await self._peek(params, host)
            return await self._ingest(params, host)
        except Malformed as exc:
            return PluginResult.err(f"{params['url']}: {exc}", code="malformed_feed")

    async def _peek(self, params, host):
        feed, _ = await _fetched(host, params["url"], {})
        newest = sorted(feed.entries, key=lambda entry: entry.date, reverse=True)[: params.get("limit", 20)]
        entries = [{"title": one.title, "url": one.url, "date": one.date, "author": one.author, "begins": one.text[:300]} for one in newest]
        citations = [{"type": "web", "ref": one.url, "label": one.title} for one in newest if one.url]
        return PluginResult.ok({"title": feed.title, "found": len(feed.entries), "entries": entries}, citations=citations, cost={"api_calls": 1})

    async def _ingest(self, params, host):
        url, kb_id = params["url"], params["kb_id"]
        cursor = Cursor(None if params.get("reset_cursor") else await host.cursor.get(kb_id), url)
        feed, headers = await _fetched(host, url, cursor.headers())
        if feed is None:
            return PluginResult.ok({"not_modified": True, "found": 0, "ingested": 0, "unchanged": 0, "skipped": 0, "waiting": 0}, cost={"api_calls": 1})
        pending = cursor.pending(feed.entries)
        now, waiting = pending[: params.get("max_items", 100)], pending[params.get("max_items", 100) :]
        ingested, skips = 0, []
        for entry in now:
            skip, changed = await _take(host, kb_id, url, entry)
            ingested += changed
            if skip is not None:
                skips.append(skip)
        # Once, after everything: a run that is cut off has moved nothing.
        await host.cursor.set(kb_id, cursor.moved(feed.entries, waiting, headers))
        found = len(feed.entries)
        counts = {"found": found, "ingested": ingested, "skipped": len(skips), "waiting": len(waiting)}
        counts["unchanged"] = found - ingested - len(skips) - len(waiting)
        notes = [f"{feed.left_out} entries behind the first {found} are left out"] if feed.left_out else None
        return PluginResult.ok({"title": feed.title, "not_modified": False, **counts}, skips=skips or None, diagnostics=notes, cost={"api_calls": 1})


async def _fetched(host, url, conditions):
    """Return the feed and the headers of the answer; no feed where nothing has changed. Raises Malformed."""
    answer = await host.http.fetch_bytes("GET", url, headers={"Accept": ACCEPT, **conditions}, max_bytes=MAX_DOCUMENT + 1)
    headers = answer["headers"]
    if answer["status_code"] == 304:
        return None, headers
    if answer["status_code"] != 200:
        raise HttpRequestFailed(answer["status_code"], url, None, headers)
    if len(answer["content"]) > MAX_DOCUMENT:
        raise Malformed(f"the document has more than {MAX_DOCUMENT} bytes")
    return parse(answer["content"], headers.get("content-type"), url), headers


async def _take(host, kb_id, url, entry):
    """Take one entry in; return why it was left out, if it was, and whether it was new."""
    id = source_id(url, entry)
    if len(entry.text) > MAX_TEXT:
        return Skip(id, SkipReason.TOO_LARGE, entry.title, {"size": len(entry.text), "max": MAX_TEXT}), False
    if not entry.text:
        return Skip(id, SkipReason.EMPTY_EXTRACTION, entry.title, {"url": entry.url}), False
    attributes = {"feed": url, "author": entry.author, "modified_at": entry.date}
    answer = await host.kb.ingest_text(
        kb_id,
        title=entry.title,
        content=entry.text,
        source_id=id,
        source_url=entry.url or None,
        attributes={name: value for name, value in attributes.items() if value},
    )
    if not answer.get("skipped"):
        return None, True
    if answer.get("skip_reason") == "hash_match":
        return None, False
    return Skip(id, answer.get("skip_reason"), entry.title), False


def source_id(url, entry):
    """Return what the knowledge base knows an entry by: the same in every run."""
    return f"web_feed:{short(url)}:{short(entry.key)}"


_URL = {"url": {"type": "string", "pattern": "^https?://", "maxLength": 2000, "title": "Address", "x-ui": {"help": "Of an RSS 2.0 or Atom feed."}}}
