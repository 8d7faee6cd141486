"""From what happens in a Gmail account to a request to the kernel.

What a mail says is data of the request and chooses nothing here. Who it is
from counts as little: the principal is the mailbox that was notified, and
whose rights that gives is for the host to know.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from datetime import datetime, timezone

MOST_TEXT = 20_000
SEND, READ = "https://www.googleapis.com/auth/gmail.send", "https://www.googleapis.com/auth/gmail.readonly"


class NotMapped(ValueError):
    """An event that is not a request."""


def connected(state: str, email: str, scope: str, error: str) -> dict:
    """OAuth flow callback -> Mailbox.Connected or Mailbox.Refused. The code goes no further."""
    granted = sorted(set(scope.split()))
    if error:
        return _request("Mailbox.Refused", {"provider": "google", "error": error}, email, ("callback", state), {}, "mailbox")
    payload = {"provider": "google", "scopes": granted[:20], "can_send": SEND in granted, "can_read": READ in granted}
    return _request("Mailbox.Connected", payload, email, ("callback", state), {}, "mailbox")


def notification(message: dict) -> tuple[str, str]:
    """Return the mailbox and the history id that a push tells of."""
    try:
        said = json.loads(base64.b64decode(message["data"], validate=True))
        email, history = said["emailAddress"], str(said["historyId"])
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise NotMapped("message.data is no notification of Gmail") from None
    if not isinstance(email, str) or not 3 <= len(email) <= 255 or "@" not in email or not history.isdigit():
        raise NotMapped("the notification names no mailbox and history id")
    return email.lower(), history


def added(history: object) -> list:
    """Return the (thread, message) of what came in, the newest first."""
    found = []
    for record in history.get("history", []) if isinstance(history, dict) else []:
        for one in record.get("messagesAdded", []) if isinstance(record, dict) else []:
            message = one.get("message") if isinstance(one, dict) else None
            if isinstance(message, dict) and "INBOX" in (message.get("labelIds") or []) and "SENT" not in message["labelIds"]:
                found.append((str(message.get("threadId") or ""), str(message.get("id") or "")))
    return [pair for pair in reversed(found) if all(part.replace("-", "").replace("_", "").isalnum() for part in pair)]


def follow_up(thread: object, email: str, event: tuple, now: str, scope: str, base: str, needs_reply: bool) -> dict:
    """Return the request to follow up a thread: its last mail that was sent, and the reply to it if there is one."""
    messages = [m for m in thread.get("messages", []) if isinstance(m, dict)] if isinstance(thread, dict) else []
    messages.sort(key=lambda m: int(m.get("internalDate") or 0))
    own = [m for m in messages if "SENT" in (m.get("labelIds") or [])]
    if not own:
        raise NotMapped("nothing was sent in this thread")
    last = own[-1]
    replies = [m for m in messages if "INBOX" in (m.get("labelIds") or []) and m not in own and int(m["internalDate"]) >= int(last["internalDate"])]
    if needs_reply and not replies:
        raise NotMapped("no reply came in this thread")
    head = _headers(last)
    sent = {
        "to": head.get("to", ""),
        "from": head.get("from", ""),
        "subject": head.get("subject", ""),
        "message_id": head.get("message-id", ""),
        "thread_id": str(last.get("threadId") or ""),
        "sent_at": _time(last),
        "follow_ups": len(own) - 1,
    }
    payload = {}
    if replies:
        came = replies[-1]
        payload["reply"] = {"text": _text(came.get("payload"))[:MOST_TEXT], "received_at": _time(came)}
        if _headers(came).get("message-id"):
            payload["reply"]["message_id"] = _headers(came)["message-id"]
        now = max(now, _time(came)) if now else _time(came)
    payload["now"] = now
    if not base.startswith("https://gmail.googleapis.com"):
        payload["gmail"] = base
    return _request("Funding.Outreach.FollowUp", payload, email, event, {"outreach": {"sent": sent}}, scope)


def _request(intent: str, payload: dict, email: str, event: tuple, context: dict, scope: str) -> dict:
    digest = hashlib.sha256("\0".join((email, *event)).encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "intent": {"type": intent, "payload": payload},
        "principal": {"provider": "google", "external_id": email},
        "context": dict(context, request={"scope": scope}),
        "constraints": {},
        "idempotency_key": f"gmail:{digest}",
        "metadata": {"source": "gmail", "event": event[0]},
    }


def _headers(message: dict) -> dict:
    """The headers of a message, by name in lower case; the first of several."""
    found: dict = {}
    for header in ((message.get("payload") or {}).get("headers") or []):
        if isinstance(header, dict) and isinstance(header.get("name"), str) and isinstance(header.get("value"), str):
            found.setdefault(header["name"].lower(), header["value"][:500])
    return found


def _time(message: dict) -> str:
    return datetime.fromtimestamp(int(message.get("internalDate") or 0) // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(part: object, depth: int = 0) -> str:
    """The plain text of a message, the first that there is."""
    if not isinstance(part, dict) or depth > 20:
        return ""
    data = (part.get("body") or {}).get("data")
    if str(part.get("mimeType", "")).startswith("text/plain") and isinstance(data, str):
        try:
            return base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)).decode("utf-8", "replace")
        except (ValueError, binascii.Error):
            return ""
    return next(filter(None, (_text(inner, depth + 1) for inner in part.get("parts") or [])), "")
