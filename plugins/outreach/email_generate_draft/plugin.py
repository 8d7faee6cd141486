"""Email.GenerateDraft: a funding outreach email, as a draft.

Nothing is written and nothing is sent: the draft is the answer. The text comes
from fixed templates, filled by the tool Template.Fill.
"""

from __future__ import annotations

from draft import SUBJECT, TONES, template, values
from mortise import Context, InvalidInput, Plugin, Result

plugin = Plugin("Email.GenerateDraft", version="1.0.0")


@plugin.operator(name="Email.GenerateDraft", policy_tags=["draft_only", "pii_allowed"])
def generate(professor: dict, student: dict, ctx: Context, tone: str = "formal", subject: str = "", **addresses) -> dict:
    """Generate a funding outreach email draft."""
    if tone not in TONES:
        raise InvalidInput(f"tone: {tone!r} is none of {', '.join(TONES)}")
    unknown = sorted(set(addresses) - {"to", "from"})
    if unknown:
        raise InvalidInput(f"unknown {', '.join(unknown)}")
    filled = values(professor, student)
    body = _fill(ctx, template(tone, "paper" in filled, "interest" in filled), filled)
    if not subject:
        subject = " ".join(_fill(ctx, SUBJECT, filled).split())[:500]
    words = len(body.split())
    return Result({"draft": {"subject": subject, "body": body, **addresses}, "words": words}, summary=f"A draft of {words} words.")


def _fill(ctx: Context, text: str, filled: dict) -> str:
    return ctx.call("Template.Fill", {"template": text, "values": filled})["data"]["text"]


if __name__ == "__main__":
    plugin.run()
