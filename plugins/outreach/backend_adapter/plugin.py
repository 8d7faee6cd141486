"""Backend.Adapter: the platform's backend on one side, the kernel on the other."""

from __future__ import annotations

from mapping import cost, digest, outcome, to_request
from mortise import Context, Plugin, PluginError

BACKEND = "http://127.0.0.1:8025"

plugin = Plugin("Backend.Adapter", version="1.0.0", capabilities=["http"])


@plugin.adapter
def inbound(ctx: Context, **event) -> dict:
    """Turn a webhook event of the backend into a request to the kernel, if its user has the credits."""
    needed = cost(event)
    url = f"{event.get('backend') or BACKEND}/credits/{event['tenant']}/{event['user']['id']}"
    answer = ctx.service("http.fetch", {"url": url, "follow_redirects": False, "retries": 2})
    body = answer.get("json")
    balance = body.get("balance") if isinstance(body, dict) else None
    if answer["status_code"] == 404:
        raise PluginError("the backend knows no such user", code="UNKNOWN_USER")
    if answer["status_code"] != 200 or type(balance) is not int:
        raise PluginError(f"the backend answered {answer['status_code']}, and no balance", code="CREDITS_UNKNOWN", retryable=True)
    if balance < needed:
        raise PluginError(f"it costs {needed} credits, and there are {balance}", code="INSUFFICIENT_CREDITS", details={"needed": needed, "balance": balance})
    return to_request(event)


@plugin.adapter
def outbound(url: str, reference: str, status: str, text: str, ctx: Context, intent: str = "") -> dict:
    """Ask for an outcome, and what it cost, to be written back to the backend."""
    told = outcome(reference, status, text, intent)
    answer = ctx.call("ExternalSystem.WriteOutcome", {"url": url, "outcome": told}, key=f"outcome:{digest(reference, status)}")
    return {"status": answer["status"], "data": answer.get("data")}


if __name__ == "__main__":
    plugin.run()
