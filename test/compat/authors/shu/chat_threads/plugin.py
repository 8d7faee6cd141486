import re
from datetime import datetime, timezone

from shu_plugin_sdk import IngestionResult, PluginResult, Skip, SkipReason

MENTION = re.compile(r"<@(U\w+)>")
LINK = re.compile(r"<(https?://[^|>]+)(?:\|([^>]+))?>")


class ProviderSaidNo(Exception):
    pass


class ChatThreads:
    name = "chat_threads"
    version = "0.8.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["ingest", "digest"], "default": "ingest",
                   "x-ui": {"enum_labels": {"ingest": "Ingest full content", "digest": "Create summary"},
                            "enum_help": {"ingest": "Pulls full items into the Knowledge Base.", "digest": "Summarizes into a single Knowledge Object."}}},
            "channel": {"type": "string"},
            "kb_id": {"type": "string"},
            "min_replies": {"type": "integer", "minimum": 0, "x-ui": {"help": "Shorter threads are skipped"}},
            "api": {"type": "string", "x-ui": {"hidden": True}},
        }, "required": ["op", "channel", "kb_id"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"threads": {"type": "integer"}, "next_cursor": {"type": ["string", "null"]}}, "required": ["threads"]}

    async def _call(self, host, params, token, method, **q):
        r = await host.http.fetch("GET", "%s/%s" % (params.get("api") or "https://slack.example.com/api", method), params=q, headers={"Authorization": "Bearer " + token})
        if not r["body"].get("ok"):
            raise ProviderSaidNo(r["body"].get("error", "unknown"))
        return r["body"]

    async def _name(self, host, params, token, user):
        cached = await host.cache.get("u:" + user)
        if cached:
            return cached
        try:
            body = await self._call(host, params, token, "users.info", user=user)
            name = body["user"]["name"]
        except ProviderSaidNo:
            name = user
        await host.cache.set("u:" + user, name, ttl_seconds=3600)
        return name

    async def _text(self, host, params, token, msg):
        text = LINK.sub(lambda m: m.group(2) or m.group(1), msg.get("text", ""))
        for uid in set(MENTION.findall(text)):
            text = text.replace("<@%s>" % uid, "@" + await self._name(host, params, token, uid))
        return "%s: %s" % (await self._name(host, params, token, msg.get("user", "bot")), text)

    async def execute(self, params, context, host):
        token = await host.secrets.get("chat_token")
        kb, channel = params["kb_id"], params["channel"]
        oldest = await host.cursor.get(kb)
        q = {"channel": channel}
        if oldest:
            q["oldest"] = oldest
        try:
            history = await self._call(host, params, token, "history", **q)
        except ProviderSaidNo as exc:
            return PluginResult.err("provider: %s" % exc, code="channel_not_found" if "channel" in str(exc) else "provider_error")
        least = params.get("min_replies", 1)
        newest, count, skips, digest = oldest, 0, [], []
        for head in sorted(history["messages"], key=lambda m: float(m["ts"])):
            if newest is None or float(head["ts"]) > float(newest):
                newest = head["ts"]
            if head.get("reply_count", 0) < least:
                skips.append(Skip(id=head["ts"], reason=SkipReason.OTHER, details={"replies": head.get("reply_count", 0)}))
                continue
            replies = await self._call(host, params, token, "replies", channel=channel, ts=head["ts"])
            lines = [await self._text(host, params, token, m) for m in replies["messages"]]
            title = lines[0][:80]
            if params["op"] == "ingest":
                await host.kb.ingest_thread(kb, title=title, content="\n".join(lines), thread_id="%s:%s" % (channel, head["ts"]),
                                            attributes={"modified_at": datetime.fromtimestamp(float(head["ts"]), timezone.utc).isoformat()})
            else:
                digest.append("- %s (%d messages)" % (title, len(lines)))
            count += 1
        if params["op"] == "digest":
            if digest:
                await host.kb.ingest_text(kb, title="Digest of " + channel, content="\n".join(digest), source_id="digest:" + channel)
            return IngestionResult.ok({"threads": count, "digest": "\n".join(digest), "next_cursor": oldest}, skips)
        if newest and newest != oldest:
            await host.cursor.set_safe(kb, newest)
        return IngestionResult.ok({"threads": count, "skipped": len(skips), "next_cursor": newest}, skips)
