"""Mail of an account into a knowledge base, what came lately as a digest, and mail marked as read."""

import asyncio
import logging
from collections import Counter
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from .lib.messages import Message

try:
    import pydantic  # for hosts that have it
except ImportError:
    pydantic = None

if TYPE_CHECKING:
    from shu_plugin_sdk.contracts import Plugin

log = logging.getLogger(__name__)
API = "http://api.provider.example/gmail/v1/users"


class _Result:
    def __init__(self, status: str, data: Optional[Dict[str, Any]] = None, error: Optional[Dict[str, Any]] = None, **more: Any):
        self.status = status
        self.data = data
        self.error = error
        for name, value in more.items():
            setattr(self, name, value)

    @classmethod
    def ok(cls, data: Optional[Dict[str, Any]] = None, **more: Any) -> "_Result":
        return cls("success", data=data or {}, **more)

    @classmethod
    def err(cls, message: str, code: str = "tool_error", details: Optional[Dict[str, Any]] = None) -> "_Result":
        return cls("error", error={"code": code, "message": message, "details": details or {}})


class InboxArchivePlugin:
    name = "inbox-archive"  # differs from the manifest: only a warning
    version = "2.0.9"
    OPS = ("ingest", "digest")

    def get_schema(self) -> Optional[Dict[str, Any]]:
        return {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "title": "Inbox archive",
            "description": "Keep mail searchable.",
            "properties": {
                "op": {"type": "string", "enum": list(self.OPS), "default": "ingest", "x-ui": {"enum_labels": {"ingest": "Ingest", "digest": "Digest"}, "enum_help": {"ingest": "All of it."}}},
                "kb_id": {"type": ["string", "null"], "x-ui": {"hidden": True, "help": "Where it goes."}},
                "since_hours": {"type": "integer", "default": 48, "minimum": 1, "maximum": 3360, "x-ui": {"help": "Look-back window"}},
                "query_filter": {"type": ["string", "null"], "default": None, "x-ui": {"placeholder": "Auto"}},
                "max_results": {"type": "integer", "default": 50, "minimum": 1, "maximum": 500, "x-ui": {"show_when": {"field": "op", "in": ["ingest"]}}},
                "reset_cursor": {"type": ["boolean", "null"], "default": False},
            },
            "required": [],
            "additionalProperties": True,
        }

    def get_output_schema(self) -> Optional[Dict[str, Any]]:
        counts = {name: {"type": "integer"} for name in ("count", "ingested")}
        return {"type": "object", "properties": {**counts, "history_id": {"type": ["string", "null"]}, "ko": {"type": ["object", "null"]}}, "additionalProperties": True}

    async def execute(self, params: Dict[str, Any], context: Any, host: Any) -> _Result:
        op = (params.get("op") or "ingest").lower()
        if op not in self.OPS:
            return _Result.err(f"Unsupported op: {op}")
        kb_id = params.get("kb_id")
        if not kb_id:
            return _Result.err("kb_id is required", code="missing_parameter")
        if not hasattr(host, "auth") or not hasattr(host, "http"):
            return _Result.err("auth and http capabilities are required")
        token, target = await host.auth.resolve_token_and_target("google")
        if not token:
            return _Result.err("No Google access token", code="auth_missing", details={"provider": "google"})
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        await host.log.info("inbox-archive: begins", extra={"op": op, "target": target})
        log.info("begins %s", op)
        return await getattr(self, f"_{op}")(params, context, host, kb_id, headers, target)

    async def _pages(self, host: Any, headers: Dict[str, str], target: str, params: Dict[str, Any], query: Dict[str, Any]) -> Tuple[List[str], int]:
        ids: List[str] = []
        token, pages = None, 0
        while len(ids) < params.get("max_results", 50):
            query["pageToken"] = token
            listed = await host.http.fetch("GET", f"{API}/{target}/messages", headers=headers, params=query)
            body = listed.get("body") or {}
            ids.extend(item["id"] for item in body.get("messages", []))
            token, pages = body.get("nextPageToken"), pages + 1
            if not token:
                break
        return ids, pages

    async def _ingest(self, params, context, host, kb_id, headers, target):
        if params.get("reset_cursor"):
            await host.cursor.delete_safe(kb_id)
        history = await host.cursor.get(kb_id)
        if history != context["watermark"] and not params.get("reset_cursor"):
            return _Result.err("the watermark is another", code="watermark")
        query = {"maxResults": 2, "q": params.get("query_filter"), "startHistoryId": history, "includeSpamTrash": False}
        ids, pages = await self._pages(host, headers, target or "me", params, query)
        gate = asyncio.Semaphore(4)
        fetched: Dict[str, Any] = {}

        async def fetch(id_: str) -> None:
            async with gate:
                fetched[id_] = await host.http.fetch_or_none("GET", f"{API}/{target}/messages/{id_}", headers=headers, params={"format": "full"})

        await asyncio.gather(*(fetch(id_) for id_ in ids))
        skips, latest = [], int(history or 0)

        async def ingest(id_: str) -> Any:
            answer = fetched[id_]
            if answer is None:
                skips.append({"id": id_, "name": None, "reason": "network", "details": {}})
                return None
            latest_of.append(int(answer["body"].get("historyId", 0)))
            message = Message.parse(answer["body"])
            if not message.text:
                skips.append({"id": id_, "name": message.subject, "reason": "empty_extraction"})
                return None
            return await host.kb.ingest_email(
                kb_id,
                subject=message.subject,
                sender=message.sender,
                recipients={"to": message.to, "cc": [], "bcc": []},
                date=message.date.isoformat() if message.date else None,
                message_id=message.id,
                thread_id=message.thread_id,
                body_text=message.text,
                body_html=None,
                labels=message.labels,
                source_url=f"https://mail.example.com/#inbox/{message.id}",
                attributes={"modified_at": message.date, "extraction_metadata": {"account": target}},
            )

        latest_of = [latest]
        results, errors = await host.utils.map_safe(ids, ingest, max_errors=5)
        for item, exc in errors:
            log.warning("%s: %s", item, exc)
            skips.append({"id": item, "reason": "malformed", "details": {"error": str(exc)}})
        kept = [one for one in results if one]
        new = str(max(latest_of))
        await host.cursor.set_safe(kb_id, new)
        return _Result.ok(
            {"count": len(ids), "ingested": len([one for one in kept if not one.get("skipped")]), "history_id": new, "target": target, "pages": pages},
            skips=skips,
            diagnostics=[f"{len(errors)} could not be read"],
            cost={"api_calls": pages + len(ids)},
        )

    async def _digest(self, params, context, host, kb_id, headers, target):
        since = datetime.now(timezone.utc) - timedelta(hours=params.get("since_hours", 48))
        ids, _ = await self._pages(host, headers, "me", params, {"q": f"after:{since:%Y}"})
        bodies = await asyncio.gather(*[host.http.fetch("GET", f"{API}/me/messages/{id_}", headers=headers) for id_ in ids[:1]], return_exceptions=True)
        senders = Counter(Message.parse(one["body"]).sender for one in bodies if not isinstance(one, Exception))
        ko = {
            "type": "email_digest",
            "source": {"plugin": "inbox_archive", "window": {"hours": params.get("since_hours", 48)}},
            "external_id": f"digest:{context.user_id}",
            "title": "Digest",
            "content": "\n".join(f"{who}: {n}" for who, n in senders.most_common(5)) or "nothing",
            "attributes": {"total": len(ids)},
        }
        id_ = await host.kb.upsert_knowledge_object(kb_id, ko)
        who = await host.identity.get_current_user_identity()
        return SimpleNamespace(status="success", data={"ko": {"id": id_, "text": isinstance(id_, str)}, "count": len(ids), "user": who["user_id"], "mail": host.identity.google_email, "target": target})

    async def list_actions(self):
        schema = {"type": "object", "properties": {"message_id": {"type": "string"}}, "required": ["message_id"], "additionalProperties": False}
        return [
            SimpleNamespace(name="mark_read", description="Mark a message as read.", params_schema=schema, required_scopes=["mail.modify"], requires_approval=True, risk_level="low"),
            {"name": "star", "description": "Star a message.", "params_schema": schema, "required_scopes": [], "requires_approval": False},
        ]

    async def perform_action(self, name, args, context, host):
        if name == "star":
            await host.storage.put(f"star:{args['message_id']}", True, namespace="stars")
            return {"status": "ok", "action_id": "s-" + args["message_id"], "result": {"starred": await host.storage.get("star:" + args["message_id"], namespace="stars")}}
        if not context.get("approved"):
            return {"status": "pending_approval", "action_id": "m-" + args["message_id"], "preview": {"removes": ["UNREAD"], "message": args["message_id"]}}
        token, target = await host.auth.resolve_token_and_target("google")
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": context["idempotency_key"]}
        answer = await host.http.fetch("POST", f"{API}/{target}/messages/{args['message_id']}/modify", headers=headers, json={"removeLabelIds": ["UNREAD"]})
        return {"status": "ok", "action_id": "m-" + args["message_id"], "result": {"labels": answer["body"]["labelIds"], "key": bool(context["idempotency_key"])}}
