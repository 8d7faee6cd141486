"""A host for tests, with no host: the same host object, and services in memory.

    host = FakeHost(["http", "kb"], plugin="notes")
    host.respond("GET", "https://api.example.com/notes", json=[{"id": 1}])
    result = run(Notes().execute({"op": "sync", "kb_id": "kb"}, host.context, host))
    assert host.requests[0]["headers"]["User-Agent"] == "Shu-Tool/notes"

FakeHostBuilder makes a host of mocks instead, and patch_retry_sleep lets retries happen at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json as _json
from binascii import b2a_base64
from fnmatch import fnmatchcase
from typing import Any, Coroutine, Iterable, Mapping

from _shim.host import NEEDS, CapabilityDenied, Host
from _shim.records import Record

from .errors import HttpRequestFailed
from .mocks import FakeHostBuilder, patch_retry_sleep

__all__ = ["CapabilityDenied", "FakeHost", "FakeHostBuilder", "HttpRequestFailed", "patch_retry_sleep", "run"]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end."""
    return asyncio.run(work)


class Kept:
    """What a FakeHost has taken in and given out, for a test to look at."""

    def __init__(self, plugin: str, user: Mapping[str, Any]) -> None:
        self.plugin = plugin
        self.user = dict(user)
        self.user_id = str(user.get("user_id") or "")
        self.params: dict[str, Any] = {}
        self.inline_bytes = 1 << 62
        self.scratch = "."
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.logs: list[dict[str, Any]] = []
        self.secrets: dict[str, str] = {}
        self.tokens: dict[str, tuple[Any, Any]] = {}
        self.values: dict[tuple[str, ...], Any] = {}  # of cache, storage and cursor
        self.documents: dict[str, dict[str, Any]] = {}  # by ko_id
        self.responses: list[tuple[str, str, Any]] = []

    async def ask(self, method: str, args: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return self.ask_now(method, args)

    def ask_now(self, method: str, args: dict[str, Any]) -> Any:
        args = _json.loads(_json.dumps(args, default=str))
        self.asked.append((method, args))
        service, _, name = method.partition(".")
        if service in ("cache", "storage", "cursor"):
            return self._value(service, name, args)
        answer = getattr(self, f"_{service}_{name}", None)
        if answer is not None:
            return answer(args)
        if service == "kb" and name.startswith("ingest"):
            return self._ingest(args)
        raise LookupError(f"FakeHost has no {method}")

    def log(self, level: str, message: str, fields: dict[str, Any]) -> None:
        self.logs.append({"level": level, "message": message, "fields": fields})

    def _value(self, service: str, name: str, args: dict[str, Any]) -> Any:
        key = (service, str(args.get("namespace") or ""), str(args.get("key") or args.get("kb_id")))
        if name == "get":
            return {"found": key in self.values, "value": self.values.get(key)}
        if name == "delete":
            return {"deleted": self.values.pop(key, None) is not None}
        self.values[key] = args.get("value")
        return {}

    def _secrets_get(self, args: dict[str, Any]) -> Any:
        return {"found": args["name"] in self.secrets, "value": self.secrets.get(args["name"])}

    def _secrets_set(self, args: dict[str, Any]) -> Any:
        self.secrets[args["name"]] = args["value"]
        return {}

    def _secrets_delete(self, args: dict[str, Any]) -> Any:
        return {"deleted": self.secrets.pop(args["name"], None) is not None}

    def _identity_current(self, args: dict[str, Any]) -> Any:
        identities = self.user.get("identities") or {}
        accounts = {key: [{"account_id": one.get("subject"), "primary_email": one.get("email")}] for key, one in identities.items()}
        return {"email": None, "name": None, "identities": {}, "providers": accounts, **self.user}

    def _identity_primary_email(self, args: dict[str, Any]) -> Any:
        identity = (self.user.get("identities") or {}).get(args["provider"]) or {}
        return {"email": identity.get("email")}

    def _identity_lookup(self, args: dict[str, Any]) -> Any:
        return {"found": False}

    def _auth_resolve(self, args: dict[str, Any]) -> Any:
        token, target = self.tokens.get(args["provider"], (None, None))
        return {"token": token, "target": target, "mode": args.get("mode") or ""}

    def _rate_limit_take(self, args: dict[str, Any]) -> Any:
        return {"allowed": True, "retry_after_ms": 0}

    def _audit_log(self, args: dict[str, Any]) -> Any:
        return {}

    def _scheduler_enqueue(self, args: dict[str, Any]) -> Any:
        return {"id": f"scheduled-{len(self.asked)}"}

    def _http_fetch(self, args: dict[str, Any]) -> Any:
        for method, url, response in self.responses:
            if method in ("*", args["method"]) and fnmatchcase(args["url"], url):
                return dict(response)
        raise LookupError(f"no response is set for {args['method']} {args['url']}")

    def _ingest(self, args: dict[str, Any]) -> Any:
        source = (args.get("attributes") or {}).get("external_id") or args.get("source_id") or args.get("message_id")
        return self._keep(str(source or args.get("thread_id")), args)

    def _kb_upsert_knowledge_object(self, args: dict[str, Any]) -> Any:
        ko = args.get("ko") or {}
        if not ko.get("source"):
            raise ValueError("a knowledge object names its source")
        return self._keep(str(ko.get("external_id") or ko.get("id")), args)

    def _kb_delete(self, args: dict[str, Any]) -> Any:
        id = self._ko_id(args["external_id"])
        if self.documents.pop(id, None) is None:
            return {"deleted": False}
        return {"deleted": True, "ko_id": id[:16], "chunk_count": 1}

    def _ko_id(self, source: str) -> str:
        return hashlib.sha256(f"{self.plugin}:{self.user_id}|{source}".encode()).hexdigest()

    def _keep(self, source: str, args: dict[str, Any]) -> Any:
        id = self._ko_id(source)
        answer = {"ko_id": id, "document_id": id[:16], "word_count": 0, "character_count": 0, "chunk_count": 0, "extraction": {}}
        text = str(args.get("content") or args.get("body_text") or "")
        answer.update(word_count=len(text.split()), character_count=len(text), chunk_count=1 if text else 0, created=id not in self.documents)
        if self.documents.get(id) == args:
            answer.update(skipped=True, skip_reason="hash_match")
        self.documents[id] = args
        return answer


class FakeHost(Host):
    """A host object with the capabilities given; all there are where none are. `kept` is what is behind it."""

    __slots__ = ("kept",)

    def __init__(
        self,
        capabilities: Iterable[str] | None = None,
        plugin: str = "plugin",
        user: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        tokens: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> None:
        kept = Kept(plugin, user or {"user_id": "user-1", "email": "user-1@example.com"})
        kept.secrets.update(secrets or {})
        kept.tokens.update(tokens or {})
        super().__init__(kept, frozenset(filter(None, NEEDS.values())) if capabilities is None else frozenset(capabilities))
        object.__setattr__(self, "kept", kept)

    @property
    def context(self) -> Record:
        """The second argument of execute."""
        return Record(user_id=self.kept.user_id, agent_key=None, idempotency_key="call-1", watermark=None)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests of host.http, in order."""
        return [args for method, args in self.kept.asked if method == "http.fetch"]

    @property
    def documents(self) -> list[dict[str, Any]]:
        """What was ingested and is still there."""
        return list(self.kept.documents.values())

    def respond(
        self,
        method: str,
        url: str,
        status: int = 200,
        json: Any = None,
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Say what a request is answered with; method and url may hold `*`. The last one set for a request counts."""
        told = {name.lower(): value for name, value in (headers or {}).items()}
        answer: dict[str, Any] = {"status_code": status, "headers": told}
        if body is None:
            told.setdefault("content-type", "application/json")
            body = _json.dumps(json)
        if isinstance(body, bytes):
            answer["body_base64"] = b2a_base64(body, newline=False).decode()
        else:
            answer["body"] = body
        self.kept.responses.insert(0, (method.upper(), url, answer))
