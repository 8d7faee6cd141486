"""Gmail.Send: one mail through the Gmail API.

The host makes the request: this process has no network of its own. Gmail takes
no idempotency key, so the manifest claims none; what came of a request that
was never answered is found out by `find_out`, from the mails in the mailbox.
"""

from __future__ import annotations

import base64

from message import BadMail, Mailbox, build, date_of, message_id, reference
from mortise import Context, InvalidInput, Plugin, PluginError, Reconciled, Result, ServiceError

GMAIL = "https://gmail.googleapis.com"
SCOPE = "email:send"
PREVIEW_LINES = 12

plugin = Plugin("Gmail.Send", version="1.1.0", capabilities=["http"])


class Mail:
    """The mail of one call, and where it goes."""

    def __init__(self, ctx: Context, mail: dict) -> None:
        try:
            self.sender = Mailbox(mail["from"], "from")
            to = mail["to"]
            self.to = [Mailbox(text, "to") for text in ([to] if isinstance(to, str) else to)]
            self.subject, self.body = mail["subject"], mail["body"]
            trace = ctx.trace
            # What the call is told apart by stays the same when it is tried again.
            correlation, workflow = trace.get("correlation_id") or "", trace.get("workflow_id") or ""
            tenant = str(ctx.auth.get("tenant_id") or "")
            self.id = message_id(tenant, ctx.key or correlation, self.sender.domain)
            date = date_of(ctx.key, correlation, workflow)
            self.thread = mail.get("thread_id") or ""
            in_reply_to = reference(mail["in_reply_to"], "in_reply_to") if mail.get("in_reply_to") else ""
            self.raw = build(self.sender, self.to, self.subject, self.body, self.id, date, in_reply_to)
        except BadMail as err:
            raise InvalidInput(str(err)) from None
        self.url = (mail.get("base") or GMAIL) + "/gmail/v1/users/me/messages"

    @property
    def addresses(self) -> list:
        return [mailbox.address for mailbox in self.to]


@plugin.operator(
    name="Gmail.Send",
    effects=["gmail_send", "http_write"],
    policy_tags=["external_send", "pii_allowed"],
    permissions=[SCOPE],
    brokered=True,
)
def send(ctx: Context, **mail) -> dict:
    """Send one mail through the Gmail API."""
    _permitted(ctx)
    message = Mail(ctx, mail)
    raw = base64.urlsafe_b64encode(message.raw).decode("ascii")
    answer = ctx.service(
        "http.fetch",
        {
            "method": "POST",
            "url": message.url + "/send",
            "json": {"raw": raw, **({"threadId": message.thread} if message.thread else {})},
            "follow_redirects": False,
        },
    )
    if answer["status_code"] != 200:
        raise _failure(answer)
    sent = answer.get("json")
    if not isinstance(sent, dict) or not isinstance(sent.get("id"), str):
        raise PluginError(f"{message.url}/send answered 200 and no message", code="GMAIL_ANSWER")
    data = _data(message, sent)
    ctx.log.info("sent", gmail_id=data["id"], recipients=len(message.to), bytes=len(message.raw))
    return Result(
        data,
        summary=f"Sent to {', '.join(message.addresses)}.",
        metrics={"provider": "gmail"},
        nondeterminism={"is_nondeterministic": True, "reasons": ["Gmail gives every mail an id"], "stability": "medium"},
    )


@send.preview
def show(ctx: Context, **mail) -> dict:
    """What would be sent."""
    _permitted(ctx)
    message = Mail(ctx, mail)
    lines = message.body.splitlines()
    return {
        "from": message.sender.header() if message.sender.name.isascii() else message.sender.address,
        "to": message.addresses,
        "subject": message.subject,
        "first_lines": [line[:200] for line in lines[:PREVIEW_LINES]],
        "more_lines": max(0, len(lines) - PREVIEW_LINES),
        "bytes": len(message.raw),
        "message_id": message.id,
        "request": f"POST {message.url}/send",
    }


@send.reconcile
def find_out(ctx: Context, effects: list, **mail) -> Reconciled:
    """Find out whether the mail of an earlier attempt was sent.

    A mail with the Message-ID is proof that it was. That there is none is
    proof that it was not only as long as nothing in the mailbox looks like it:
    a server may have given the mail another id.
    """
    message = Mail(ctx, mail)
    if not any(effect.get("effect") == "http_write" or effect.get("method") == "http.fetch" for effect in effects):
        return Reconciled("not_done", evidence={"why": "no request was recorded"})
    by_id = f"rfc822msgid:{message.id[1:-1]}"
    alike = f'in:sent to:{message.to[0].address} subject:"{message.subject.replace(chr(34), " ")}"'
    evidence = []
    for query in (by_id, alike):
        found = _search(ctx, message.url, query)
        evidence.append({"query": query, "found": None if found is None else len(found)})
        if found is None or found and query is alike:
            return Reconciled("unknown", evidence={"searches": evidence})
        if found:
            return Reconciled("succeeded", data=_data(message, found[0]), evidence={"searches": evidence})
    return Reconciled("not_done", evidence={"searches": evidence})


def _search(ctx: Context, url: str, query: str) -> list | None:
    """The mails that a query finds, None where that cannot be told."""
    try:
        answer = ctx.service("http.fetch", {"url": url, "params": {"q": query, "maxResults": 10}, "follow_redirects": False})
    except ServiceError as err:
        ctx.log.warning("the search was not answered", code=err.code)
        return None
    body = answer.get("json")
    if answer["status_code"] != 200 or not isinstance(body, dict):
        return None
    found = body.get("messages", [])
    if not isinstance(found, list) or not all(isinstance(m, dict) and isinstance(m.get("id"), str) for m in found):
        return None
    return found


def _data(message: Mail, sent: dict) -> dict:
    return {
        "id": sent["id"],
        "thread_id": str(sent.get("threadId") or ""),
        "message_id": message.id,
        "to": message.addresses,
        "bytes": len(message.raw),
    }


def _permitted(ctx: Context) -> None:
    """The host has asked already; a sender of mail asks again (kernel contracts, 5.3.4 E)."""
    scopes = ctx.auth.get("scopes") or []
    if SCOPE not in scopes and "*" not in scopes:
        raise PluginError(f"sending mail needs the scope {SCOPE}", code="SCOPE_DENIED", details={"scope": SCOPE})


def _failure(answer: dict) -> PluginError:
    status = answer["status_code"]
    body = answer.get("json")
    error = body.get("error") if isinstance(body, dict) else None
    said = error.get("message") if isinstance(error, dict) else None
    text = f"Gmail refused the mail with status {status}" + (f": {said[:300]}" if isinstance(said, str) else "")
    details = {"status": status}
    if status in (401, 403):
        return PluginError(text, code="GMAIL_NOT_AUTHORISED", details=details)
    if status == 429:
        return PluginError(text, code="rate_limited", details=details, retryable=True)
    if 400 <= status < 500:
        return PluginError(text, code="GMAIL_REFUSED", details=details)
    return PluginError(f"Gmail answered with status {status}: whether the mail was sent is not known", code="GMAIL_FAILED", details=details)


if __name__ == "__main__":
    plugin.run()
