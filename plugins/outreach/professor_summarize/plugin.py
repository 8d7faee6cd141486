"""Professor.Summarize: what a professor works on, in sentences of the source itself.

It reads and does nothing else. The summary is taken from the record or the
page word by word, and every sentence says where it stands there.
"""

from __future__ import annotations

from mortise import Context, Plugin, PluginError, Result
from reading import Source, Unreadable, of_page, of_record, summarize

BACKEND = "http://127.0.0.1:8025"
SCOPE = "professor:read"

plugin = Plugin("Professor.Summarize", version="1.0.0", capabilities=["http"])


@plugin.operator(name="Professor.Summarize", policy_tags=["read_only"], permissions=[SCOPE], brokered=True)
def professor_summarize(professor_id: object, ctx: Context, source: str = "", sentences: int = 5, backend: str = BACKEND) -> dict:
    """Read a professor's record or page from the backend, and summarize it with citations."""
    _permitted(ctx)
    url = f"{backend}/professors/{professor_id}"
    asked = {"url": url, "follow_redirects": False, "retries": 2, "max_bytes": 4 << 20}
    if source:
        asked["params"] = {"source": source}
    answer = ctx.service("http.fetch", asked)
    try:
        read = _read(answer, professor_id)
    except Unreadable as err:
        raise PluginError(f"{url}: {err}", code="PROFESSOR_UNREADABLE") from None
    summary = summarize(read, sentences)
    return Result(
        {"professor": read.professor, "email": read.email, "summary": summary, "source": {"url": url, "form": read.form, "digest": read.digest}},
        summary=f"{read.professor['name']} works on {read.professor['field']}; {len(summary)} sentences are cited.",
        nondeterminism={"is_nondeterministic": True, "reasons": ["web_content"], "stability": "high"},
    )


def _read(answer: dict, professor_id: object) -> Source:
    status = answer["status_code"]
    if status == 404:
        raise PluginError(f"the backend knows no professor {professor_id}", code="NO_PROFESSOR", details={"professor_id": professor_id})
    if status != 200:
        raise PluginError(f"the backend answered {status}", code="BACKEND_REFUSED", details={"status": status}, retryable=status >= 500 or status == 429)
    if "json" in answer:
        return of_record(answer["json"])
    if "body" not in answer or answer.get("truncated"):
        raise Unreadable("it is no text, or too much of it")
    return of_page(answer["body"])


def _permitted(ctx: Context) -> None:
    """The host has asked already; an operator asks again (kernel contracts, 5.3.4 E)."""
    scopes = ctx.auth.get("scopes") or []
    if SCOPE not in scopes and "*" not in scopes:
        raise PluginError(f"reading professors needs the scope {SCOPE}", code="SCOPE_DENIED", details={"scope": SCOPE})


if __name__ == "__main__":
    plugin.run()
