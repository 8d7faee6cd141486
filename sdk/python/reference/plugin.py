"""The reference plugin: what protocol/testdata replays against this SDK."""

from __future__ import annotations

import time

from mortise import Context, Plugin, PluginError, Reconciled, ServiceError

plugin = Plugin(
    "example.reference",
    version="1.0.0",
    description="One operation for everything the protocol can say.",
    capabilities=["cache"],
)


@plugin.tool
def echo(value: object) -> dict[str, object]:
    """Answer with the value."""
    return {"value": value}


@plugin.tool
def fail(code: str, message: str) -> None:
    """Fail with a code and a message of one's own."""
    raise PluginError(message, code=code, details={"path": "a.log"})


@plugin.tool(name="raise")
def raise_(message: str = "") -> None:
    """Raise an uncaught exception."""
    raise RuntimeError(message)


@plugin.tool
def remember(key: str, value: object, ctx: Context) -> dict[str, object]:
    """Keep a value in the cache and read it back."""
    ctx.cache.set(key, value)
    return {"value": ctx.cache.get(key)}


@plugin.tool
def forbidden(ctx: Context) -> dict[str, str]:
    """Ask for a service that was not granted."""
    try:
        ctx.service("secrets.get", {"key": "k"})
    except ServiceError as refusal:
        return {"refused": refusal.code}
    return {"refused": ""}


@plugin.tool
def count(to: int, ctx: Context) -> dict[str, int]:
    """Count, and say so."""
    ctx.log.info("counting", to=to)
    for n in range(1, to + 1):
        ctx.progress("counting", done=n, total=to)
    ctx.emit("done")
    return {"counted": to}


@plugin.tool
def stray_print() -> dict[str, bool]:
    """Print to standard output, which belongs to the protocol."""
    print("this goes to standard error")
    return {"printed": True}


@plugin.tool
def wait(ctx: Context) -> None:
    """Work until cancelled."""
    ctx.progress("waiting")
    while True:
        ctx.check()
        time.sleep(0.002)


@plugin.operator(effects=["mail_send"])
def send(to: str, ctx: Context) -> dict[str, object]:
    """Send a mail, or so it says."""
    return {"to": to, "attempt": ctx.attempt, "verdict": ctx.policy.get("verdict", "")}


@send.preview
def show(to: str, ctx: Context) -> dict[str, object]:
    return {"to": to, "signature": ctx.cache.get("signature")}


@send.reconcile
def find_out(to: str, effects: list, ctx: Context) -> Reconciled:
    if not effects:
        return Reconciled("not_done", evidence={"effects": 0})
    states = [effect["state"] for effect in effects]
    if "intent" in states:
        return Reconciled("unknown")
    if "late" in states:
        return Reconciled("failed", error=PluginError(f"{to} does not exist", code="BOUNCED", details={"to": to}))
    evidence = {"effects": len(effects), "answer": effects[0]["response"]}
    return Reconciled("succeeded", data=send(to, ctx), evidence=evidence)


@plugin.hook(
    "tool.before@v1",
    priority=50,
    failure_mode="fail",
    deadline_ms=2000,
    before=["example.later"],
    after=["example.first"],
)
def guard(payload: dict, ctx: Context) -> dict:
    tool = payload["toolName"]
    if tool == "shell":
        return {"allow": False, "reason": "no shell here"}
    if tool == "mail/send":
        return {"allow": True, "payload": {**payload, "args": {**payload["args"], "footer": True}}}
    if tool == "secrets":
        return {"allow": False, "reason": forbidden(ctx)["refused"]}
    if tool == "raise":
        raise PluginError("it did not look", code="NO_RULES")
    return {"allow": True}


@plugin.hook("channel.message.in@v1")
def ask_politely(payload: dict) -> dict | None:
    return None if payload["text"].endswith("?") else {**payload, "text": payload["text"] + "?"}


@plugin.hook("session.opened@v1")
def opened(payload: dict, ctx: Context) -> None:
    ctx.log.info("opened", agent=ctx.agent, session=ctx.session)


plugin.run()
