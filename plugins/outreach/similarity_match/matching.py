"""Compares texts by the terms that they share, and says by which.

A text is a vector: for each term, how often it stands there (1 + log), times
how rare it is among all texts given (log((1 + n) / (1 + with it)) + 1, as
Salton and Buckley, "Term-weighting approaches" 1988, with the smoothing that
keeps a term of every text above nothing). Two texts are as alike as the cosine
of their vectors says. The same lists always give the same answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter

MOST_TERMS = 8
MOST_PLACES = 8

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_COMMON = frozenset(
    """a about above after again all also am an and any are as at be been before being between both but by can could did do does
    doing down during each few for from further had has have having he her here hers him his how i if in into is it its itself
    just me more most my no nor not now of off on once only or other our ours out over own same she should so some such than
    that the their theirs them then there these they this those through to too toward towards under until up upon using very was
    we were what when where which while who whom why will with within without would you your yours""".split()
)
_ENDINGS = ("ations", "ation", "ically", "ities", "ings", "ness", "ical", "ing", "ity", "ies", "ed", "es", "ly", "ic", "s")


def stem(word: str) -> str:
    """Return what words of one family share: an ending less, where enough of the word stays."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def places(text: str) -> dict:
    """Return where each term stands: single words, and two neighbours as one term.

    Neighbours are joined where nothing but white space is between them, so no
    term reaches from one sentence into the next.
    """
    found: dict[str, list] = {}
    before = None
    for word in _WORD.finditer(text):
        root = stem(word.group())
        if root in _COMMON or len(root) < 2 or word.group().lower() in _COMMON:
            before = None
            continue
        found.setdefault(root, []).append(word.span())
        if before is not None and not text[before[2] : word.start()].strip():
            found.setdefault(f"{before[0]} {root}", []).append((before[1], word.end()))
        before = (root, word.start(), word.end())
    return found


def match(wanted: list, offered: list, limit: int) -> dict:
    """Return the pairs of both lists that are alike, and both lists ranked."""
    found = [places(text) for text in wanted + offered]
    rarity = _rarity(found)
    vectors = [_vector(one, rarity) for one in found]
    pairs = []
    for i in range(len(wanted)):
        for j in range(len(offered)):
            mine, theirs = vectors[i], vectors[len(wanted) + j]
            parts = {term: mine[term] * theirs[term] for term in mine if term in theirs}
            score = min(1.0, sum(parts.values()))
            if round(score, 4) > 0:
                pairs.append((score, i, j, parts))
    pairs.sort(key=lambda pair: (-round(pair[0], 9), pair[1], pair[2]))
    best_wanted, best_offered = [0.0] * len(wanted), [0.0] * len(offered)
    for score, i, j, _ in pairs:
        best_wanted[i], best_offered[j] = max(best_wanted[i], score), max(best_offered[j], score)
    return {
        "score": round(sum(best_wanted) / len(wanted), 4),
        "pairs": [_told(pair, found[pair[1]], found[len(wanted) + pair[2]], wanted[pair[1]]) for pair in pairs[:limit]],
        "ranked": {"wanted": _ranked(wanted, best_wanted), "offered": _ranked(offered, best_offered)},
    }


def _rarity(found: list) -> dict:
    within = Counter(term for one in found for term in one)
    return {term: math.log((1 + len(found)) / (1 + count)) + 1 for term, count in within.items()}


def _vector(found: dict, rarity: dict) -> dict:
    weights = {term: (1 + math.log(len(at))) * rarity[term] for term, at in found.items()}
    length = math.sqrt(sum(weight * weight for weight in weights.values()))
    return {term: weight / length for term, weight in weights.items()} if length else {}


def _told(pair: tuple, mine: dict, theirs: dict, text: str) -> dict:
    score, i, j, parts = pair
    terms = sorted(parts, key=lambda term: (-round(parts[term], 9), term))[:MOST_TERMS]
    return {
        "wanted": i,
        "offered": j,
        "score": round(score, 4),
        "terms": [
            {
                "term": text[slice(*mine[term][0])],
                "share": round(min(1.0, parts[term] / score), 4),
                "in_wanted": _spans(mine[term]),
                "in_offered": _spans(theirs[term]),
            }
            for term in terms
        ],
    }


def _spans(found: list) -> list:
    return [{"start": start, "end": end} for start, end in found[:MOST_PLACES]]


def _ranked(texts: list, scores: list) -> list:
    return [texts[i] for i in sorted(range(len(texts)), key=lambda i: -round(scores[i], 9))]
