"""Email.OptimizeDraft: a draft with its review applied, as an answer and nowhere else.

Rules come first. What they leave is given to a model of the host where one is
configured and allowed; without one, or where its answer may not be taken, the
rules' draft is the answer, and says why.
"""

from __future__ import annotations

from improving import INSTRUCTIONS, Refused, by_rules, of_model, question
from mortise import Context, Plugin, Result, ServiceError

plugin = Plugin("Email.OptimizeDraft", version="1.0.0", capabilities=["llm"])


@plugin.operator(name="Email.OptimizeDraft", policy_tags=["draft_only", "pii_allowed"])
def email_optimize_draft(draft: dict, issues: list, ctx: Context, names: list = [], model: str = "auto") -> dict:
    """Apply a review to a draft: by a model of the host where there is one, else by the rules' own words."""
    better, changes, left = by_rules(draft, issues)
    open_issues = [issue for issue in issues if issue["rule"] in left]
    why, used, asked = "nothing was left for a model", "", False
    if model == "never":
        why = "no model was wanted"
    elif open_issues:
        better, why, used, asked = _by_model(better, open_issues, names, ctx)
    by = "model" if used else "rules"
    return Result(
        {"draft": better, "words": max(1, len(better["body"].split())), "by": by, "why": why, "changes": changes, "left": left},
        summary=f"{len(changes)} places were changed by rule, and the rest by {used}." if used else f"{len(changes)} places were changed by rule.",
        metrics={"model": used} if used else None,
        nondeterminism={"is_nondeterministic": True, "reasons": ["llm_sampling"], "stability": "low"} if asked else None,
    )


def _by_model(draft: dict, issues: list, names: list, ctx: Context) -> tuple[dict, str, str, bool]:
    """The draft, why no model wrote it, which one did, and whether one was asked."""
    try:
        answer = ctx.service("llm.query_text", {"prompt": question(draft, issues), "system_context": INSTRUCTIONS, "max_tokens": 4096, "hints": {"tier": "light"}})
    except ServiceError as err:
        return draft, f"the host's models are not for this plugin: {err.code}", "", False
    if not answer.get("ok"):
        word = str(answer.get("error") or "internal").partition(":")[0]
        return draft, f"no model answered: {word[:100]}", "", word != "not_configured"
    try:
        return of_model(answer.get("text") or "", draft, names), "", str(answer.get("model_used") or "a model"), True
    except Refused as err:
        ctx.log.warning("a model's draft was not taken", why=str(err))
        return draft, f"a model answered, and {err}", "", True


if __name__ == "__main__":
    plugin.run()
