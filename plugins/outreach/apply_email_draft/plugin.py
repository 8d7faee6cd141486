"""Apply.EmailDraft: a draft becomes the backend's final email.

A PUT of the whole email: made twice, it leaves the same email behind. What
came of one that was never answered can be read back.
"""

from __future__ import annotations

import hashlib
import json

from mortise import Context, Plugin, PluginError, Reconciled, Result, ServiceError

BACKEND = "http://127.0.0.1:8025"
SCOPE = "email:apply"

plugin = Plugin("Apply.EmailDraft", version="1.0.0", capabilities=["http"])


@plugin.operator(
    name="Apply.EmailDraft",
    effects=["http_write"],
    policy_tags=["writes_final", "pii_allowed"],
    permissions=[SCOPE],
    brokered=True,
)
def apply(id: str, draft: dict, ctx: Context, backend: str = BACKEND) -> dict:
    """Write a draft to the backend as the final email."""
    _permitted(ctx)
    url = _url(backend, id)
    answer = ctx.service("http.fetch", {"method": "PUT", "url": url, "json": _email(draft), "follow_redirects": False})
    status = answer["status_code"]
    if status not in (200, 201, 204):
        raise PluginError(f"the backend answered {status} to the email {id}", code="BACKEND_REFUSED", details={"status": status})
    return Result(_data(id, url, draft), summary=f"The email {id} is final.")


@apply.preview
def show(id: str, draft: dict, ctx: Context, backend: str = BACKEND) -> dict:
    """What would be written, and what stands there now."""
    _permitted(ctx)
    url = _url(backend, id)
    now = _read(ctx, url)
    return {
        "request": f"PUT {url}",
        "subject": draft["subject"],
        "to": draft.get("to", ""),
        "first_lines": [line[:200] for line in draft["body"].splitlines()[:12]],
        "bytes": len(json.dumps(_email(draft))),
        "replaces": {"found": "the email that is there", "absent": "nothing", "unknown": "not known"}[now[0]],
    }


@apply.reconcile
def find_out(id: str, draft: dict, ctx: Context, effects: list, backend: str = BACKEND) -> Reconciled:
    """Find out whether the email stands there as it was meant to.

    Another email proves nothing: it may have been there before, or come after.
    """
    url = _url(backend, id)
    state, email = _read(ctx, url)
    evidence = {"url": url, "there": state}
    if state == "found" and email == _email(draft):
        return Reconciled("succeeded", data=_data(id, url, draft), evidence=evidence)
    return Reconciled("not_done" if state == "absent" else "unknown", evidence=evidence)


def _read(ctx: Context, url: str) -> tuple[str, object]:
    """The email at url: found, absent or unknown."""
    try:
        answer = ctx.service("http.fetch", {"url": url, "follow_redirects": False})
    except ServiceError as err:
        ctx.log.warning("the backend did not answer", code=err.code)
        return "unknown", None
    if answer["status_code"] == 404:
        return "absent", None
    if answer["status_code"] != 200 or "json" not in answer:
        return "unknown", None
    return "found", answer["json"]


def _email(draft: dict) -> dict:
    return dict(draft, state="final")


def _url(backend: str, id: str) -> str:
    return f"{backend}/funding_emails/{id}"


def _data(id: str, url: str, draft: dict) -> dict:
    digest = hashlib.sha256(json.dumps(draft, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
    return {"id": id, "url": url, "digest": f"sha256:{digest}"}


def _permitted(ctx: Context) -> None:
    """The host has asked already; an operator asks again (kernel contracts, 5.3.4 E)."""
    scopes = ctx.auth.get("scopes") or []
    if SCOPE not in scopes and "*" not in scopes:
        raise PluginError(f"writing a final email needs the scope {SCOPE}", code="SCOPE_DENIED", details={"scope": SCOPE})


if __name__ == "__main__":
    plugin.run()
