"""A client of the API of a host, /api/v1/. It needs nothing but the standard library."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import asdict, dataclass, field
from typing import IO, Any, Iterator, Mapping, Optional
from email.message import Message

from ._errors import MortiseError

_ATTEMPTS = 3
_HOST_STAYS = 30.0  # seconds, for which the host stays for a call by itself
_LONGEST_WAIT = 60.0  # seconds, of one request
_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")


@dataclass(frozen=True)
class Operation:
    """An operation. Lists have no input_schema."""

    name: str
    """plugin/operation"""
    version: str
    kind: str
    """tool, operator, agent or adapter"""
    description: str = ""
    effects: tuple[str, ...] = ()
    """What it may cause, such as mail_send."""
    input_schema: Optional[dict[str, Any]] = None


@dataclass(frozen=True)
class Pending:
    """A call that waits for a person: names and ids alone, so that it can be stored and shown."""

    operation: str
    call_id: str
    approval_id: str
    url: str
    """The page on which an approver decides, after signing in there."""
    expires_at: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class Outcome:
    """What became of a call."""

    call_id: str
    operation: str
    status: str
    """succeeded, failed, unknown, in_progress or pending_approval"""
    data: Any = None
    summary: str = ""
    error: Mapping[str, Any] = field(default_factory=dict)
    pending: Optional[Pending] = None


@dataclass(frozen=True)
class Call:
    """A call as the host keeps it."""

    call_id: str
    operation: str
    status: str
    approval: str
    """The id of its approval, if it has one."""
    approval_state: str
    """open, approved, denied, expired, void or consumed"""
    outcome: Outcome


@dataclass(frozen=True)
class Approval:
    id: str
    state: str
    """open, approved, denied, expired, void or consumed"""
    subject: str
    """The id of the call, or of the plan."""
    expires_at: str
    decided_by: str = ""
    reason: str = ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None  # a token goes to the host alone


class Client:
    """Calls a host. It has no state but where that is, and may be used by several threads."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        public_url: str | None = None,
        timeout: float = 30.0,
        max_bytes: int = 16 << 20,
    ) -> None:
        """By default url is MORTISE_URL and token MORTISE_TOKEN. public_url is where people reach the host, if that is another
        address: pages on which to decide are there. timeout is for an answer, beside the time that the host
        is asked to wait; an answer of more than max_bytes is refused."""
        url = url if url is not None else os.environ.get("MORTISE_URL", "")
        token = token if token is not None else os.environ.get("MORTISE_TOKEN", "")
        if not url:
            raise MortiseError("configuration", "the address of the host is missing: pass url, or set MORTISE_URL")
        if not token:
            raise MortiseError(
                "configuration", "the token is missing: pass token, or set MORTISE_TOKEN to what `mortise tokens create` made"
            )
        parsed = urllib.parse.urlsplit(url)
        loopback = _LOOPBACK.fullmatch(parsed.hostname or "") is not None
        if not parsed.hostname or not (parsed.scheme == "https" or parsed.scheme == "http" and loopback):
            raise MortiseError(
                "configuration",
                f"{url} is not an https address, nor an http address of this machine: a token is sent to no other",
            )
        self.url = f"{parsed.scheme}://{parsed.netloc}{parsed.path.rstrip('/')}"
        self.public_url = (public_url or self.url).rstrip("/")
        self._token = token
        self._timeout = timeout
        self._max_bytes = max_bytes
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if loopback:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def operations(self, kind: str = "") -> Iterator[Operation]:
        """Operations that the token may know of, page by page."""
        page = ""
        while True:
            query = {"page_size": "200", **({"kind": kind} if kind else {}), **({"page_token": page} if page else {})}
            found = self._request("GET", "operations?" + urllib.parse.urlencode(query))
            for operation in _list(found, "operations"):
                yield _operation(operation)
            following = _text(found, "next_page_token")
            if not following or following == page:
                return
            page = following

    def operation(self, name: str) -> Operation:
        """One operation, with its input schema."""
        return _operation(self._request("GET", f"operations/{_path(name)}"))

    def execute(self, name: str, input: Any, *, key: str | None = None, wait: float = 60.0) -> Outcome:
        """Execute an operation and wait for what becomes of it.

        The same request with the same key gets the answer to the first, and nothing is done twice. Without one, this call has a
        key of its own, under which it is repeated where an answer is lost. A call that fails, that a
        person has to approve, or that still runs when the time is over is an outcome; what the host refuses raises.
        """
        end = time.monotonic() + wait
        # Without a preference the host stays for a call that runs, and answers at once where a person has to approve. With
        # "wait" it would stay for the person too.
        stay = wait >= _HOST_STAYS
        outcome = self._outcome(
            self._request(
                "POST",
                f"operations/{_path(name)}:execute",
                body={"input": input},
                key=key if key is not None else uuid.uuid4().hex,
                prefer="" if stay else "respond-async",
                wait=_HOST_STAYS if stay else 0.0,
            )
        )
        while outcome.status == "in_progress" and time.monotonic() < end:
            outcome = self.call(outcome.call_id, wait=end - time.monotonic()).outcome
        return outcome

    def call(self, call_id: str, *, wait: float = 0.0) -> Call:
        """A call as it stands, or as it ends within the time."""
        seconds = min(_LONGEST_WAIT, max(0.0, float(math.ceil(wait))))
        query = f"?wait={int(seconds)}s" if seconds else ""
        found = self._request("GET", f"calls/{urllib.parse.quote(call_id, safe='')}{query}", wait=seconds)
        return self._call(found)

    def approval(self, approval_id: str) -> Approval:
        """How an approval stands. Deciding about it is for people, on the host's page."""
        found = self._request("GET", f"approvals/{urllib.parse.quote(approval_id, safe='')}")
        names = ("id", "state", "subject", "expires_at", "decided_by", "reason")
        return Approval(**{name: _text(found, name) for name in names})

    def cancel(self, call_id: str, reason: str) -> None:
        """Withdraw a call that waits, or tell one that runs to stop."""
        self._request("POST", f"calls/{urllib.parse.quote(call_id, safe='')}:cancel", body={"reason": reason})

    def _call(self, found: Mapping[str, Any]) -> Call:
        outcome = found.get("outcome")
        if not isinstance(outcome, dict):
            raise MortiseError("bad_response", "the host answered a call without an outcome")
        return Call(
            call_id=_text(found, "call_id"),
            operation=_text(found, "operation"),
            status=_text(found, "status"),
            approval=_text(found, "approval"),
            approval_state=_text(found, "approval_state"),
            outcome=self._outcome(outcome),
        )

    def _outcome(self, found: Mapping[str, Any]) -> Outcome:
        call_id, operation, status = _text(found, "call_id"), _text(found, "operation"), _text(found, "status")
        approval = found.get("approval")
        pending = None
        if status == "pending_approval" and isinstance(approval, dict):
            approval_id = _text(approval, "id")
            page = f"{self.public_url}/decide/{urllib.parse.quote(approval_id, safe='')}"
            pending = Pending(operation, call_id, approval_id, page, _text(approval, "expires_at"))
        error = found.get("error")
        return Outcome(
            call_id=call_id,
            operation=operation,
            status=status,
            data=found.get("data"),
            summary=_text(found, "summary"),
            error=error if isinstance(error, dict) else {},
            pending=pending,
        )

    def _request(
        self, method: str, route: str, *, body: Any = None, key: str | None = None, prefer: str = "", wait: float = 0.0
    ) -> dict[str, Any]:
        repeatable = method == "GET" or key is not None
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._once(method, route, body, key, prefer, wait)
            except MortiseError as error:
                again = error.code == "unreachable" or error.status in (429, 503)
                pause = error.retry_after or 0.2 * attempt
                if not repeatable or not again or attempt == _ATTEMPTS or pause > 5:
                    raise
                time.sleep(pause)

    def _once(self, method: str, route: str, body: Any, key: str | None, prefer: str, wait: float) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/api/v1/{route}", method=method)
        request.add_header("Accept", "application/json")
        request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            try:
                request.data = json.dumps(body, allow_nan=False).encode()
            except (TypeError, ValueError, RecursionError) as error:
                raise MortiseError("invalid_input", f"the input cannot be written as JSON: {error}") from error
            request.add_header("Content-Type", "application/json")
        if key is not None:
            request.add_header("Idempotency-Key", key)
        if prefer:
            request.add_header("Prefer", prefer)
        limit = self._timeout + wait
        end = time.monotonic() + limit
        try:
            try:
                response = self._opener.open(request, timeout=limit)
            except urllib.error.HTTPError as refused:
                response = refused
            with response:
                status = int(response.status or 0)
                raw = self._read(response, end)
                retry_after = response.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException) as error:
            raise MortiseError("unreachable", f"{self.url} did not answer: {error}", retryable=True) from error
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError) as error:
            if 300 <= status < 400:
                raise MortiseError("bad_response", f"{self.url} answered {status}, which leads elsewhere", status=status) from error
            raise MortiseError("bad_response", f"{self.url} answered {status} with what is no JSON", status=status) from error
        if not isinstance(answer, dict):
            raise MortiseError("bad_response", f"{self.url} answered {status} with no object", status=status)
        if not 200 <= status < 300:
            raise MortiseError(
                _text(answer, "code") or "bad_response",
                _text(answer, "detail") or f"the host answered {status}",
                status=status,
                retryable=answer.get("retryable") is True,
                retry_after=float(retry_after) if retry_after.isdigit() else None,
                call_id=_text(answer, "call_id") or None,
            )
        return answer

    def _read(self, response: Any, end: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            part: bytes = response.read1(1 << 16)
            if not part:
                return b"".join(parts)
            size += len(part)
            if size > self._max_bytes:
                raise MortiseError("bad_response", f"the answer is longer than {self._max_bytes} bytes", status=response.status)
            if time.monotonic() > end:
                raise TimeoutError("timed out")
            parts.append(part)


class AsyncClient:
    """A client for programs with an event loop. Each request has a thread, which ends with its answer."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def operations(self, kind: str = "") -> list[Operation]:
        return await asyncio.to_thread(lambda: list(self.client.operations(kind)))

    async def operation(self, name: str) -> Operation:
        return await asyncio.to_thread(self.client.operation, name)

    async def execute(self, name: str, input: Any, *, key: str | None = None, wait: float = 60.0) -> Outcome:
        return await asyncio.to_thread(lambda: self.client.execute(name, input, key=key, wait=wait))

    async def call(self, call_id: str, *, wait: float = 0.0) -> Call:
        return await asyncio.to_thread(lambda: self.client.call(call_id, wait=wait))

    async def approval(self, approval_id: str) -> Approval:
        return await asyncio.to_thread(self.client.approval, approval_id)

    async def cancel(self, call_id: str, reason: str) -> None:
        await asyncio.to_thread(self.client.cancel, call_id, reason)


def failure_of(outcome: Outcome) -> MortiseError | None:
    """The error that an outcome stands for, where it is none to go on with."""
    if outcome.status == "succeeded":
        return None
    if outcome.status == "in_progress":
        message = f"{outcome.operation} still runs, as call {outcome.call_id}"
        return MortiseError("in_progress", message, retryable=True, call_id=outcome.call_id)
    if not outcome.error:
        code = "outcome_unknown" if outcome.status == "unknown" else "bad_response"
        return MortiseError(code, f"the call {outcome.call_id} is {outcome.status}", call_id=outcome.call_id)
    return MortiseError(
        _text(outcome.error, "code"),
        _text(outcome.error, "message"),
        retryable=outcome.error.get("retryable") is True,
        call_id=outcome.call_id,
        plugin_code=_text(outcome.error, "plugin_code") or None,
    )


def _operation(found: Mapping[str, Any]) -> Operation:
    schema = found.get("input_schema")
    return Operation(
        name=_text(found, "name"),
        version=_text(found, "version"),
        kind=_text(found, "kind"),
        description=_text(found, "description") or _text(found, "title"),
        effects=tuple(str(effect) for effect in _list(found, "effects")),
        input_schema=schema if isinstance(schema, dict) else None,
    )


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    if not isinstance(value, list):
        raise MortiseError("bad_response", f"the host answered no list of {name}")
    return value


def _path(name: str) -> str:
    parts = name.split("/")
    if len(parts) != 2 or any(part in ("", ".", "..") for part in parts):
        raise MortiseError("invalid_input", f"{name} is no plugin/operation")
    return "/".join(urllib.parse.quote(part, safe="@") for part in parts)
