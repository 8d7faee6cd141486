"""Gmail.Adapter: what happens in a Gmail account becomes intents.

It reads and sends nothing; mails go out through Gmail.Send alone. The token of
the account is put into its requests by the host.
"""

from __future__ import annotations

import mapping
from mortise import Context, InvalidInput, Plugin, PluginError

GMAIL = "https://gmail.googleapis.com"

plugin = Plugin("Gmail.Adapter", version="1.0.0", capabilities=["http"])


@plugin.adapter
def connected(state: str, email: str, scope: str = "", error: str = "", **others) -> dict:
    """The browser came back from Google: whether an account was connected, and for what."""
    return mapping.connected(state, email.lower(), scope, error)


@plugin.adapter
def notified(message: dict, start_history_id: str, ctx: Context, scope: str = "gmail", base: str = GMAIL, **others) -> dict:
    """Gmail says that a mailbox changed: the reply that came, as a request to follow up."""
    try:
        email, history = mapping.notification(message)
        listed = _get(ctx, base, "history", {"startHistoryId": start_history_id, "historyTypes": "messageAdded", "labelId": "INBOX", "maxResults": 100})
        for thread_id, message_id in mapping.added(listed)[:10]:
            thread = _get(ctx, base, f"threads/{thread_id}", {"format": "full"})
            try:
                return mapping.follow_up(thread, email, ("reply", thread_id, message_id), "", scope, base, needs_reply=True)
            except mapping.NotMapped as err:
                ctx.log.info("a mail is no reply to one that was sent", thread=thread_id, why=str(err))
        raise mapping.NotMapped(f"of what came up to {history} nothing is a reply to a mail that was sent")
    except mapping.NotMapped as err:
        raise InvalidInput(str(err)) from None


@plugin.adapter
def checked(email: str, thread_id: str, now: str, ctx: Context, scope: str = "gmail", base: str = GMAIL) -> dict:
    """A thread is looked after: what was sent, and the reply if there is one, as a request to follow up."""
    thread = _get(ctx, base, f"threads/{thread_id}", {"format": "full"})
    try:
        return mapping.follow_up(thread, email.lower(), ("check", thread_id, now), now, scope, base, needs_reply=False)
    except mapping.NotMapped as err:
        raise InvalidInput(str(err)) from None


def _get(ctx: Context, base: str, path: str, params: dict) -> object:
    answer = ctx.service("http.fetch", {"url": f"{base}/gmail/v1/users/me/{path}", "params": params, "follow_redirects": False, "retries": 2})
    status = answer["status_code"]
    if status in (401, 403):
        raise PluginError(f"Gmail answered {status}: connect the account with mortise connect google", code="GMAIL_NOT_AUTHORISED", details={"status": status})
    if status == 404:
        raise PluginError("Gmail knows no such thread, or no history from there on", code="GMAIL_GONE")
    if status != 200 or "json" not in answer:
        raise PluginError(f"Gmail answered {status}", code="GMAIL_FAILED", details={"status": status}, retryable=True)
    return answer["json"]


if __name__ == "__main__":
    plugin.run()
