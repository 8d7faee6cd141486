from __future__ import annotations

import re
from typing import Any, AsyncIterator, Dict

_VOWELS = re.compile(r"[aeiouy]+")


def syllables(word: str) -> int:
    w = word.lower()
    n = len(_VOWELS.findall(w))
    if w.endswith("e") and not w.endswith(("le", "ee")) and n > 1:
        n -= 1
    return max(n, 1)


def sentences(text: str):
    return [s for s in re.split(r"(?<=[.!?])\s+", text.strip()) if re.search(r"\w", s)]


def words(text: str):
    return re.findall(r"[A-Za-z']+", text)


def flesch(text: str) -> Dict[str, Any]:
    ss, ww = sentences(text), words(text)
    if not ss or not ww:
        return {"sentences": 0, "words": 0, "ease": None}
    syl = sum(syllables(w) for w in ww)
    ease = 206.835 - 1.015 * len(ww) / len(ss) - 84.6 * syl / len(ww)
    return {"sentences": len(ss), "words": len(ww), "syllables": syl, "ease": round(ease, 1)}


class Readability:
    """execute is itself an async generator: calling it gives the iterator."""

    name = "readability"
    version = "1.0.0"

    def get_schema(self) -> Dict[str, Any]:
        return {"type": "object", "title": "Readability", "description": "Flesch reading ease per paragraph, streamed",
                "properties": {"op": {"type": "string", "enum": ["score"]}, "text": {"type": "string", "minLength": 1},
                               "hard_below": {"type": "number", "x-ui": {"help": "Paragraphs under this are reported"}}},
                "required": ["op", "text"], "additionalProperties": False}

    def get_output_schema(self):
        return None

    async def execute(self, params, context, host) -> AsyncIterator[Dict[str, Any]]:
        paras = [p for p in re.split(r"\n\s*\n", params["text"]) if p.strip()]
        hard, limit = [], params.get("hard_below", 30)
        for i, p in enumerate(paras):
            score = flesch(p)
            if score["ease"] is not None and score["ease"] < limit:
                hard.append(i)
            yield {"type": "progress", "paragraph": i, "of": len(paras), "score": score}
        yield {"type": "content", "data": {"overall": flesch(params["text"]), "hard": hard}}
