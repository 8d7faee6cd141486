"""What a draft is made of: a template for each tone, and what goes into it."""

from __future__ import annotations

import re

SUBJECT = "Question about your work on {field}"

_GREETING = {"formal": "Dear Professor {surname},", "warm": "Dear {professor},", "brief": "Dear Professor {surname},"}
_OPENING = {
    "formal": "my name is {student} ({degree}), and I am writing to you because of your work on {field}.",
    "warm": "I am {student} ({degree}), and your work on {field} is what I keep coming back to.",
    "brief": "I am {student} ({degree}) and write about your work on {field}.",
}
_PAPER = {
    "formal": 'I have read your paper "{paper}" with care. It is close to what I would like to work on, and I would be glad to learn where you see it going.',
    "warm": 'Your paper "{paper}" is the reason for this mail. I read it twice, and it changed how I look at my own questions.',
    "brief": 'I have read "{paper}".',
}
_INTEREST = {
    "formal": "My own interest is in {interest}. I would like to apply for funding to pursue it, and your group would be my first choice.",
    "warm": "What I would love to work on is {interest}, and I am looking for funding and for a group where that would be at home.",
    "brief": "I work on {interest} and am looking for funding.",
}
_ASKING = {
    "formal": "Could you tell me whether you expect to take on students in the coming year? If so, I would be glad to send you my documents, and to talk for a few minutes whenever it suits you.",
    "warm": "Could we talk for a few minutes in the next weeks? I would be happy to send you my documents before, and to hear what you think.",
    "brief": "Are you taking on students in the coming year? Please let me know if I may send you my documents.",
}
_CLOSING = {"formal": "Yours sincerely,\n{student}", "warm": "With kind regards,\n{student}", "brief": "Best regards,\n{student}"}

TONES = tuple(_GREETING)


def template(tone: str, paper: bool, interest: bool) -> str:
    """Return the template of a draft; a part without anything to say is left out."""
    parts = [_GREETING[tone], _OPENING[tone]]
    if paper:
        parts.append(_PAPER[tone])
    if interest:
        parts.append(_INTEREST[tone])
    return "\n\n".join([*parts, _ASKING[tone], _CLOSING[tone]]) + "\n"


def values(professor: dict, student: dict) -> dict:
    """Return what the placeholders stand for: of papers and interests, the two that are nearest to each other."""
    papers, interests = professor.get("papers") or [], student.get("interests") or []
    filled = {
        "professor": professor["name"],
        "surname": professor["name"].split()[-1],
        "field": professor["field"],
        "student": student["name"],
        "degree": student["degree"],
    }
    about = _words(professor["field"])
    if interests:
        of_papers = set().union(*map(_words, papers))
        filled["interest"] = _nearest(interests, about | of_papers)
        about = _words(filled["interest"]) | about
    if papers:
        filled["paper"] = _nearest(papers, about)
    return filled


def _nearest(texts: list, about: set) -> str:
    """The text with the most words in common with `about`; the first of several."""
    return max(texts, key=lambda text: len(_words(text) & about))


def _words(text: str) -> set:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}
