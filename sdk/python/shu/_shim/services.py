"""The smaller services on the host object. All of them are awaited, but for what says otherwise."""

from __future__ import annotations

import sys

from mortise._errors import ServiceError

from .files import spelled
from .host import Fixed
from .records import Done, Known, Mail, Taken, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class Cache(Fixed):
    """Values for a while, for this plugin alone. What fails is a warning in the log: none of them raises."""

    __slots__ = ()

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value under key, default where there is none."""
        try:
            return _found(await self._line.ask("cache.get", {"key": key}), default)
        except Exception as exc:
            self._line.log("warning", f"cache.get: {exc}", {})
            return default

    async def set(self, key: str, value: Any, ttl_seconds: float | None = None, ttl: float | None = None) -> None:
        """Keep a value, for 300 seconds where nothing is said."""
        await self.set_safe(key, value, ttl_seconds, ttl)

    async def _set(self, key: str, value: Any, ttl_seconds: float | None, ttl: float | None) -> None:
        seconds = ttl_seconds if ttl_seconds is not None else ttl if ttl is not None else 300
        await self._line.ask("cache.set", {"key": key, "value": _json(value)[0], "ttl_seconds": max(1, seconds)})

    async def delete(self, key: str) -> None:
        """Forget a key."""
        await self.delete_safe(key)

    async def set_safe(self, key: str, value: Any, ttl_seconds: float | None = None, ttl: float | None = None) -> bool:
        """Keep a value; False where that failed."""
        return await _safe(self, "cache.set", self._set(key, value, ttl_seconds, ttl))

    async def delete_safe(self, key: str) -> bool:
        """Forget a key; False where that failed."""
        return await _safe(self, "cache.delete", self._line.ask("cache.delete", {"key": key}))


class Storage(Fixed):
    """Values that stay, for this plugin and its user: up to 64 KiB each."""

    __slots__ = ()

    async def get(self, key: str, default: Any = None, *, namespace: str | None = None) -> Any:
        """Return the value under key, default where there is none."""
        return _found(await self._line.ask("storage.get", _given(key=key, namespace=namespace)), default)

    async def put(self, key: str, value: Any, *, namespace: str | None = None) -> None:
        """Keep a value; what JSON does not know becomes text. Raises ValueError where it is too large."""
        value, size = _json(value)
        if size > MAX_OBJECT:
            raise ValueError(f"storage object too large ({size} > {MAX_OBJECT})")
        await self._line.ask("storage.put", {**_given(key=key, namespace=namespace), "value": value})

    async def delete(self, key: str, *, namespace: str | None = None) -> None:
        """Forget a key."""
        await self._line.ask("storage.delete", _given(key=key, namespace=namespace))


class Cursor(Fixed):
    """How far a source was read: a place for each knowledge base, and for each schedule that fills it."""

    __slots__ = ()

    async def get(self, kb_id: str) -> Any:
        """Return the cursor as text, None where there is none or it cannot be read. It never raises."""
        try:
            value = _found(await self._line.ask("cursor.get", {"kb_id": kb_id}), None)
        except Exception as exc:
            self._line.log("warning", f"cursor.get: {exc}", {})
            return None
        inner = value.get("value") if isinstance(value, dict) else None
        if isinstance(inner, str) or value is None:
            return inner
        return _text(value)

    async def set(self, kb_id: str, value: Any) -> None:
        """Move the cursor; it is kept as text."""
        await self._line.ask("cursor.set", {"kb_id": kb_id, "value": _text(value)})

    async def delete(self, kb_id: str) -> bool:
        """Delete the cursor; False where there was none."""
        return _told(await self._line.ask("cursor.delete", {"kb_id": kb_id}), "deleted")

    async def set_safe(self, kb_id: str, value: Any) -> bool:
        """Move the cursor; False where that failed."""
        return await _safe(self, "cursor.set", self.set(kb_id, value))

    async def delete_safe(self, kb_id: str) -> bool:
        """Delete the cursor; False where that failed."""
        return await _safe(self, "cursor.delete", self.delete(kb_id))


class Secrets(Fixed):
    """Secrets of this plugin by name: those of the user, then those of the system."""

    __slots__ = ()

    async def get(self, name: str, default: Any = None) -> Any:
        """Return a secret, default where it is not set."""
        return _found(await self._line.ask("secrets.get", {"name": name}), default)

    async def set(self, name: str, value: str) -> None:
        """Keep a secret of the user's."""
        await self._line.ask("secrets.set", {"name": name, "value": value})

    async def delete(self, name: str) -> bool:
        """Forget a secret of the user's; False where there was none."""
        return _told(await self._line.ask("secrets.delete", {"name": name}), "deleted")


class Identity(Fixed):
    """Who the user is, here and elsewhere. Its methods return at once, and what they return may be awaited."""

    __slots__ = ()

    def get_current_user_identity(self) -> Known:
        """Return {user_id, email}."""
        return Known(user_id=self.user_id, email=self.user_email)

    def get_primary_email(self, provider: str) -> Any:
        """Return the address of the user's account there, None where none is known."""
        answer = self._line.ask_now("identity.primary_email", {"provider": provider})
        email = (answer or {}).get("email")
        if email:
            return Mail(email)
        return Done() if _awaited(sys._getframe(1)) else None

    @property
    def user_email(self) -> str | None:
        """The address that the call is about: of whom it stands in for, of whom a feed names, else of the user."""
        params = self._line.params
        if params.get("auth_mode") == "domain_delegate" and params.get("impersonate_email"):
            return str(params["impersonate_email"])
        if params.get("__schedule_id"):
            return str(params["user_email"]) if params.get("user_email") else None
        return self._known().get("email")

    @property
    def user_id(self) -> str:
        """The user's id."""
        return self._line.user_id

    @property
    def providers(self) -> dict[str, list[Any]]:
        """The user's accounts elsewhere by provider: [{account_id, primary_email, display_name, scopes}]."""
        return {name: [record(one) for one in accounts] for name, accounts in (self._known().get("providers") or {}).items()}

    def __getattr__(self, name: str) -> Any:
        """google_email, as the bindings of schemas name it: the address at a provider, None where none is known."""
        provider, _, what = name.rpartition("_")
        if what != "email" or not provider or provider.startswith("_"):
            raise AttributeError(f"host.identity has no {name}")
        return (self._known().get("identities", {}).get(provider) or {}).get("email")

    async def lookup(self, kind: str, value: Any) -> Any:
        """Look up an account; None where none is found."""
        return record(_found(await self._line.ask("identity.lookup", {"kind": kind, "value": value}), None))

    def _known(self) -> dict[str, Any]:
        return self._line.ask_now("identity.current", {}) or {}


def _awaited(frame: Any) -> bool:
    """Report whether the call that a frame is at is awaited: a method of both kinds cannot return None to an await."""
    import opcode

    code, at = frame.f_code.co_code, frame.f_lasti + 2
    while at < len(code) and opcode.opname[code[at]] == "CACHE":
        at += 2
    return at < len(code) and opcode.opname[code[at]] == "GET_AWAITABLE"


class Auth(Fixed):
    """Tokens of accounts that are connected; which account is the host's choice."""

    __slots__ = ()

    async def resolve_token_and_target(self, provider: str, scopes: Sequence[str] | None = None) -> tuple[Any, Any]:
        """Return (token, target): "me" for a user, the address that a delegate stands in for, None for a service account.

        (None, None) where the user has no account, or one without the scopes; RuntimeError where another mode lacks something.
        """
        answer = await self._resolved(provider=provider, scopes=scopes and list(scopes))
        return answer.get("token"), "me" if answer.get("mode") == "user" and answer.get("token") else answer.get("target")

    async def provider_user_token(self, provider: str, required_scopes: Sequence[str] | None = None) -> Any:
        """Return the token of the user's own account, None where none is connected."""
        return (await self._resolved(provider=provider, scopes=required_scopes and list(required_scopes), mode="user")).get("token")

    async def provider_service_account_token(self, provider: str, scopes: Sequence[str], subject: str | None = None) -> Any:
        """Return the token of the service account, acting for subject where one is named."""
        mode = "domain_delegate" if subject else "service_account"
        return (await self._resolved(provider=provider, scopes=scopes and list(scopes), mode=mode, subject=subject)).get("token")

    async def _resolved(self, **asked: Any) -> dict[str, Any]:
        try:
            answer = await self._line.ask("auth.resolve", _given(**asked))
        except ServiceError as exc:
            if (exc.details or {}).get("unsupported"):
                raise NotImplementedError(exc.message) from exc
            if exc.code != "missing_identity" and not (exc.code == "service_denied" and (exc.details or {}).get("scopes")):
                raise
            if (exc.details or {}).get("mode") in ("domain_delegate", "service_account"):
                raise RuntimeError(exc.message) from exc
            self._line.log("info", f"auth: {exc.message}", {})
            return {}
        return answer or {}


class OCR(Fixed):
    """Text out of files."""

    __slots__ = ()

    async def extract_text(self, file_bytes: bytes, mime_type: str = "application/octet-stream", mode: str | None = None) -> Any:
        """Return {text, metadata}; the mode is auto, always or never, and any other is auto."""
        mode = mode if mode in ("always", "never") else None
        with spelled(self._line, file_bytes) as file:
            return record(await self._line.ask("ocr.extract_text", _given(file=file, mime_type=mime_type, mode=mode)))


class Rate(Fixed):
    """Limits of the plugin's own: a bucket for each thing that is scarce."""

    __slots__ = ()

    async def take(self, bucket: str, cost: float = 1) -> Taken:
        """Return {allowed, retry_after_ms}, which is true where it is allowed."""
        return Taken(await self._line.ask("rate_limit.take", {"bucket": bucket, "cost": cost}) or {})

    limit = take


class Scheduler(Fixed):
    """Work for later."""

    __slots__ = ()

    async def enqueue(self, task: Any, run_at: Any = None, params: dict[str, Any] | None = None) -> Any:
        """Have an operation of this plugin run, at run_at or soon; task is its name, or {operation, params}."""
        if isinstance(task, dict):
            given = dict(task)
            task = given.pop("operation", None) or given.pop("op", None) or given.pop("name", None)
            params = given.pop("params", None) or params or given
        when = run_at.isoformat() if hasattr(run_at, "isoformat") else run_at
        return record(await self._line.ask("scheduler.enqueue", _given(operation=task, params=params or {}, run_at=when)))


class Audit(Fixed):
    """The ledger."""

    __slots__ = ()

    async def log(self, event: str, details: dict[str, Any] | None = None, **more: Any) -> None:
        """Put on record that something happened."""
        await self._line.ask("audit.log", {"event": event, "details": {**(details or {}), **more}})


class Query(Fixed):
    """What was ingested: its list, and one by its id."""

    __slots__ = ()

    async def list(self, **filters: Any) -> Any:
        """Return documents, as the filters say: kb_id, limit, ..."""
        return record(await self._line.ask("query.list", _given(**filters)))

    async def get(self, document_id: str, **more: Any) -> Any:
        """Return one document."""
        return record(await self._line.ask("query.get", _given(document_id=document_id, **more)))


ALL = {
    "audit": Audit,
    "auth": Auth,
    "cache": Cache,
    "cursor": Cursor,
    "identity": Identity,
    "ocr": OCR,
    "query": Query,
    "rate": Rate,
    "rate_limit": Rate,
    "scheduler": Scheduler,
    "secrets": Secrets,
    "storage": Storage,
}


MAX_OBJECT = 64 << 10  # bytes of what is put into storage


def _json(value: Any) -> tuple[Any, int]:
    """Return a value as JSON has it, what it does not know as text, and its size in bytes."""
    import json

    text = json.dumps(value, default=str)
    return json.loads(text), len(text.encode())


def _text(value: Any) -> Any:
    """Return a cursor as text; one that has members stays as it is, for plugins that keep more than one place."""
    return value if isinstance(value, (dict, list)) else str(value)


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _found(answer: Any, default: Any) -> Any:
    return answer.get("value", default) if isinstance(answer, dict) and answer.get("found") else default


def _told(answer: Any, name: str) -> bool:
    return isinstance(answer, dict) and bool(answer.get(name))


async def _safe(service: Fixed, what: str, doing: Any) -> bool:
    """Wait for something that may fail without failing the call."""
    try:
        await doing
    except Exception as exc:
        service._line.log("warning", f"{what}: {exc}", {})
        return False
    return True
