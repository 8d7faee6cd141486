from __future__ import annotations

import enum
import functools
import hashlib
import json
import re
import uuid
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, AsyncIterator, ClassVar, NamedTuple, Protocol, TypedDict, cast

from shu_plugin_sdk import HttpRequestFailed, PluginResult, RetryConfig, RetryableError, Skip, SkipReason, with_retry

NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')
RETRY = RetryConfig(max_retries=2, base_delay=0.0)


class State(str, enum.Enum):
    OPEN = "open"
    DONE = "done"


class Window(NamedTuple):
    since: str | None
    page: int = 1


class Ticket(TypedDict, total=False):
    key: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Thread:
    key: str
    title: str
    lines: tuple[str, ...]
    state: State = State.OPEN
    prefix: ClassVar[str] = "tracker:"

    @property
    def content(self) -> str:
        return "\n".join(self.lines)

    @functools.cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


class Source(Protocol):
    async def pages(self, window: Window) -> AsyncIterator[list[Ticket]]: ...


class Base(ABC):
    """What every mirror does."""

    ops: tuple[str, ...] = ()

    def get_schema_for_op(self, op: str) -> dict[str, Any] | None:
        return getattr(self, f"_schema_{op}", lambda: None)()

    @abstractmethod
    async def execute(self, params: dict[str, Any], context: dict[str, Any], host: Any) -> PluginResult: ...


class Mirror(Base):
    name = "tracker_mirror"
    ops = ("sync", "find")

    def __init__(self) -> None:
        self._base = "http://api.provider.example/rest"

    def get_schema(self):
        return None

    async def get_output_schema(self):
        return {"type": "object", "properties": {"op": {"enum": ["sync", "find"]}, "share": {"type": ["number", "string"]}}, "required": ["op"]}

    def _schema_sync(self):
        return {
            "type": "object",
            "title": "Mirror tickets",
            "description": "Take tickets in as threads.",
            "properties": {
                "op": {"type": "string", "const": "sync"},
                "kb_id": {"type": "string", "minLength": 1},
                "project": {"type": "string", "pattern": "^[A-Z]+$"},
                "depth": {"$ref": "#/$defs/depth"},
            },
            "required": ["op", "kb_id"],
            "$defs": {"depth": {"type": "integer", "minimum": 1, "default": 3}},
            "additionalProperties": False,
        }

    def _schema_find(self):
        properties = {"op": {"type": "string"}, "text": {"type": "string"}, "kb_id": {"type": "string"}}
        return {"type": "object", "title": "Find", "description": "Find tickets by words.", "properties": properties, "required": ["text"]}

    async def execute(self, params, context, host):
        handlers = {"sync": self.sync, "find": self.find}
        try:
            return await handlers[params["op"]](params, context, host)
        except HttpRequestFailed as exc:
            if exc.error_category == "auth_error":
                return PluginResult.err(f"the tracker refused us: {exc.provider_message}", code="auth_failed", details={"status": exc.status_code})
            raise

    @asynccontextmanager
    async def client(self, host):
        user, token = await host.secrets.get("tracker_user"), await host.secrets.get("tracker_token")

        @with_retry(config=RETRY)
        async def get(url, **params):
            try:
                return await host.http.fetch("GET", url, auth=(user, token), params=params or None, timeout=20)
            except HttpRequestFailed as exc:
                if exc.status_code == 503:
                    raise RetryableError("asleep") from exc
                raise

        try:
            yield get
        finally:
            host.log.debug("client closed")

    async def pages(self, get, window):
        url, params = f"{self._base}/search", {"updatedSince": window.since, "expand": ["comments", "labels"]}
        while url:
            answer = await get(url, **params)
            yield cast("list[Ticket]", answer["body"]["issues"])
            link = NEXT.search(answer["headers"].get("Link", ""))
            url, params = (link.group(1) if link else None), {}

    async def sync(self, params, context, host):
        kb_id = params["kb_id"]
        window = Window(await host.cursor.get(kb_id))
        threads: list[Thread] = []
        skips: list[Skip] = []
        if not await host.rate_limit.limit("tracker", cost=2):
            return PluginResult.err("try later", code="busy")
        async with self.client(host) as get:
            async for page in self.pages(get, window):
                for ticket in page:
                    fields = ticket["fields"]
                    if "restricted" in fields.get("labels", []):
                        skips.append(Skip(ticket["key"], "confidential", name=fields["summary"]))
                        continue
                    lines = tuple(f"{c['author']}: {c['body']}" for c in fields["comments"])
                    threads.append(Thread(ticket["key"], fields["summary"], lines, State(fields["state"])))

        async def keep(thread: Thread) -> dict:
            if not thread.content:
                skips.append(Skip(thread.key, SkipReason.EMPTY_EXTRACTION))
                return None
            said = await host.kb.ingest_thread(kb_id, title=f"{thread.key} {thread.title}", content=thread.content, thread_id=Thread.prefix + thread.key,
                source_url=f"https://tracker.example.com/{thread.key}", attributes={"source_hash": thread.digest, "state": thread.state, "uuid": uuid.UUID(int=7)})
            return said

        kept, errors = await host.utils.map_safe(threads, keep)
        assert not errors, errors
        if threads:
            await host.cursor.set(kb_id, max(thread.key for thread in threads))
        await host.audit.log("mirrored", {"tickets": len(threads)})
        new = [one for one in kept if one and not one.get("skipped")]
        return PluginResult.ok({"op": "sync", "new": len(new), "seen": len(threads), "words": sum(one["word_count"] for one in new), "share": Decimal("0.5"), "states": {t.state for t in threads}}, skips=skips)

    async def find(self, params, context, host):
        key = "find:" + hashlib.sha1(params["text"].encode()).hexdigest()
        hit = await host.cache.get(key)
        if hit is None:
            documents = await host.kb.search_documents("content", "icontains", params["text"])
            hit = sorted({document["title"] for document in documents["results"]})
            await host.cache.set(key, hit, ttl_seconds=30)
        return {"status": "success", "data": {"op": "find", "found": hit}, "citations": [{"type": "ticket", "ref": title.split()[0], "label": title} for title in hit]}
