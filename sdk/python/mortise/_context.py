"""What a call knows about itself, and its line to the host."""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic

from ._errors import Cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Protocol

    class Host(Protocol):
        """The other side of a Context: a session, a version 1 call, or a stand-in for tests."""

        @property
        def paths(self) -> Mapping[str, str]: ...
        @property
        def fd(self) -> int:
            """What a coroutine's loop should watch, to poll when it is readable; -1 for nothing."""
            ...

        def request(self, ctx: Context, method: str, params: dict[str, Any]) -> Any: ...
        def notify(self, method: str, params: dict[str, Any]) -> None: ...
        def poll(self, now: bool = False) -> None: ...


BURST = 10  # progress frames that may come at once
RATE = 20  # and how many a second after that

_emitting = allocate_lock()  # a sequence number and its frame go together


def _forked() -> None:
    global _emitting
    _emitting = allocate_lock()  # a thread that is not here may have held the other


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Context:
    """One call. Annotate a parameter with it and it is handed in.

    It may be used from any thread while the call runs, and is dead afterwards.
    """

    def __init__(self, host: Host, params: Mapping[str, Any]) -> None:
        self._host = host
        self._call: str = params.get("call", "")
        self._context: Mapping[str, Any] = params.get("context") or {}
        self._open = True
        self._cancelled = False
        self._on_cancel: Callable[[], None] | None = None
        self._seq = 0
        self._message: str | None = None
        self._tokens = float(BURST)
        self._filled = 0.0
        self.deadline_ms: int = params.get("deadline_ms", 0)
        """How long the host waits for this call, in milliseconds from its start; 0 where it did not say."""

    @property
    def context(self) -> Mapping[str, Any]:
        """All of the context as the host sent it; in protocol version 1, {workspace_id, repo_root, ...}."""
        return self._context

    @property
    def auth(self) -> dict[str, Any]:
        """Who asks: {tenant_id, principal_id, principal, scopes}."""
        return self._context.get("auth") or {}

    @property
    def trace(self) -> dict[str, Any]:
        """What the call belongs to: {correlation_id, workflow_id, step_id}, and traceparent where the host is traced."""
        return self._context.get("trace") or {}

    @property
    def session(self) -> Any:
        """The session of the call, None where there is none."""
        return self._context.get("session")

    @property
    def agent(self) -> str:
        """In a hook, the agent whose event it is; else empty."""
        return self._context.get("agent") or ""

    @property
    def key(self) -> str:
        """The idempotency key, empty where there is none."""
        return self._context.get("key") or ""

    @property
    def policy(self) -> dict[str, Any]:
        """What policy decided about the call: {version, verdict, reasons}; empty where policy was not asked."""
        return self._context.get("policy") or {}

    @property
    def attempt(self) -> int:
        """Which run of the call this is: 1, and one more each time the host runs it again."""
        return self._context.get("attempt") or 1

    @property
    def scratch(self) -> str:
        """A directory that belongs to this process."""
        return self._host.paths.get("scratch") or "."

    @property
    def artifacts_dir(self) -> str | None:
        """A directory with files this process may read, None where there is none."""
        return self._host.paths.get("artifacts")

    @property
    def cancelled(self) -> bool:
        """Whether the caller has given up. Cheap enough for a tight loop."""
        if not self._cancelled:
            self._host.poll()
        return self._cancelled

    def check(self) -> None:
        """Raise Cancelled if the caller has given up."""
        if self.cancelled:
            raise Cancelled()

    def progress(
        self,
        message: str | None = None,
        done: float | None = None,
        total: float | None = None,
        unit: str | None = None,
    ) -> None:
        """Say how far the work is; call it as often as you like.

        Ten at once and twenty a second are sent, and besides them whatever has
        a new message or has reached its total.
        """
        self._host.poll()
        with _emitting:
            now = monotonic()
            self._tokens = min(BURST, self._tokens + (now - self._filled) * RATE)
            self._filled = now
            if self._tokens < 1 and message == self._message and (done is None or done != total):
                return
            self._tokens = max(0.0, self._tokens - 1)
            self._message = message
            data = {"message": message, "done": done, "total": total, "unit": unit}
            self._emit("progress", {name: value for name, value in data.items() if value is not None})

    def emit(self, data: Any) -> None:
        """Send a piece of content to the caller, in order and never dropped; raises PluginError if it is not JSON."""
        with _emitting:
            self._emit("content", data)

    def _emit(self, kind: str, data: Any) -> None:
        if self._open:
            self._host.notify("emit", {"call": self._call, "seq": self._seq + 1, "kind": kind, "data": data})
            self._seq += 1

    @property
    def log(self) -> Log:
        """Log records of this call: ctx.log.info("opened", bytes=4096)."""
        return Log(self)

    @property
    def cache(self) -> Cache:
        """The host's cache; needs the capability `cache`."""
        return Cache(self)

    @property
    def http(self) -> Http:
        """Requests that the host makes; needs the capability `http` and hosts in the manifest."""
        return Http(self)

    def call(self, operation: str, input: Any, key: str = "") -> Any:
        """Call another operation with the caller's principal and return its result as the host prints it.

        The manifest must name it under requires.tools. Raises ServiceError and Cancelled.
        """
        params = {"call": self._call, "operation": operation, "input": input, "key": key}
        return self._host.request(self, "operations.call", params)

    def service(self, method: str, args: Mapping[str, Any] | None = None) -> Any:
        """Ask any host service, as in service("secrets.get", {"key": "k"}). Raises ServiceError and Cancelled."""
        return self._host.request(self, method, {"call": self._call, "args": dict(args or {})})

    def _cancel(self) -> None:
        self._cancelled = True
        if self._on_cancel is not None:
            self._on_cancel()


class Cache:
    """Values the host keeps for this plugin, across calls and processes."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value kept under key, default where there is none."""
        answer = self._ctx.service("cache.get", {"key": key})
        return answer.get("value") if answer.get("found") else default

    def set(self, key: str, value: Any, ttl_seconds: int = 300) -> None:
        """Keep value under key for a while."""
        self._ctx.service("cache.set", {"key": key, "value": value, "ttl_seconds": ttl_seconds})

    def delete(self, key: str) -> None:
        """Forget key; nothing happens where it is unknown."""
        self._ctx.service("cache.delete", {"key": key})


class Http:
    """Requests to the hosts that the manifest declares. A status such as 404 is an answer and no error.

    An answer has status_code, headers (names in lower case), url, truncated, and one of json, body and body_base64. One of
    400 and above has failure: category, retryable, retry_after_ms, provider_message and provider_error_code.

    A header may be a secret that the host fills in: {"$secret": "api_key", "format": "Bearer {}"}.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def fetch(self, url: str, method: str = "GET", **options: Any) -> dict[str, Any]:
        """Make a request; options are those of http.fetch: headers, params, json, body, timeout_seconds, max_bytes, ...

        What is not GET or HEAD needs an operator with the effect `http_write`. Raises ServiceError and Cancelled.
        """
        answer: dict[str, Any] = self._ctx.service("http.fetch", {"method": method, "url": url, **options})
        return answer

    def get(self, url: str, **options: Any) -> dict[str, Any]:
        """Fetch a URL."""
        return self.fetch(url, **options)

    def post(self, url: str, json: Any = None, **options: Any) -> dict[str, Any]:
        """Post a value as JSON, unless it is None."""
        return self.fetch(url, "POST", **(options if json is None else {"json": json, **options}))


class Log:
    """Log records of one call. Logging never raises: fields that are not JSON are sent as their repr."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def debug(self, message: str, **fields: Any) -> None:
        self._log("debug", message, fields)

    def info(self, message: str, **fields: Any) -> None:
        self._log("info", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        self._log("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._log("error", message, fields)

    def _log(self, level: str, message: str, fields: dict[str, Any]) -> None:
        ctx = self._ctx
        if not ctx._open:
            return
        params = {"call": ctx._call, "level": level, "message": cut(message, 8192), "fields": fields}
        try:
            ctx._host.notify("log", params)
        except Exception:  # a field that is not JSON, or too much of it
            params["fields"] = {cut(name, 64): cut(repr(value), 1024) for name, value in fields.items()}
            ctx._host.notify("log", params)


def cut(value: object, limit: int) -> str:
    """Return text that fits in limit bytes of valid UTF-8."""
    data = str(value).encode("utf-8", "backslashreplace")
    return data[:limit].decode("utf-8", "ignore")
