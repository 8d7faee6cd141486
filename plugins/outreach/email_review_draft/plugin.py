"""Email.ReviewDraft: what is wrong with a draft, and where.

It changes nothing. The score comes from the tool Text.Score, the issues from
fixed rules.
"""

from __future__ import annotations

from mortise import Context, Plugin, Result
from rules import review

GOOD = 70

plugin = Plugin("Email.ReviewDraft", version="1.0.0")


@plugin.operator(name="Email.ReviewDraft", policy_tags=["draft_only", "pii_allowed"])
def email_review_draft(draft: dict, ctx: Context, names: list = []) -> dict:
    """Review a draft: a score, and issues with their places in the text."""
    scored = ctx.call("Text.Score", {"text": draft["body"], "names": [name[:200] for name in names]})["data"]
    issues = review(draft, names)
    ready = scored["score"] >= GOOD and all(issue["severity"] != "error" for issue in issues)
    data = {"score": scored["score"], "findings": scored["findings"], "verdict": "ready" if ready else "revise", "issues": issues}
    return Result(data, summary=f"{scored['score']} points and {len(issues)} issues: {data['verdict']}.")


if __name__ == "__main__":
    plugin.run()
