"""How far each feed was read, in the one cursor of a knowledge base.

    {"version": 1, "feeds": {URL: {"turn", "etag", "last_modified", "watermark", "seen": {KEY: DIGEST}}}}

turn grows with every run, so the feed with the smallest was read longest ago.
etag and last_modified are kept once a document was taken in whole. seen has what
the last document held and is taken in. watermark is the latest date that was
taken in: where seen had to give way to the space of other feeds, what is not
later counts as seen. A cursor that is lost costs time and nothing else: the
knowledge base knows each source again.
"""

import json

from .feed import short

MAX_BYTES = 56 << 10  # the host keeps 64 KiB


class Cursor:
    """The cursor of a knowledge base, as far as it is about one feed."""

    def __init__(self, kept, url):
        feeds = kept.get("feeds") if isinstance(kept, dict) and kept.get("version") == 1 else None
        self.feeds = {name: dict(own) for name, own in feeds.items() if isinstance(own, dict)} if isinstance(feeds, dict) else {}
        self.turn = 1 + max((_turn(own) for own in self.feeds.values()), default=0)
        self.url = url
        own = self.feeds.pop(url, {})
        self.etag, self.last_modified = own.get("etag") or "", own.get("last_modified") or ""
        self.watermark, self.seen = own.get("watermark") or "", own.get("seen")

    def headers(self):
        """Return what makes the request conditional."""
        conditions = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in conditions.items() if value}

    def has(self, entry):
        """Report whether an entry was taken in as it is."""
        if isinstance(self.seen, dict):
            return self.seen.get(short(entry.key)) == entry.digest
        return bool(entry.date) and entry.date <= self.watermark

    def pending(self, entries):
        """Return the entries that are to be taken in, the oldest first; those without a date come first, from the last."""
        return sorted((entry for entry in reversed(entries) if not self.has(entry)), key=lambda entry: entry.date)

    def moved(self, entries, waiting, headers):
        """Return the value to keep after all entries of a document but those that wait were taken in."""
        waits = {entry.key for entry in waiting}
        taken = [entry for entry in entries if entry.key not in waits]
        before = min((entry.date for entry in waiting if entry.date), default="9")
        dates = [entry.date for entry in taken if entry.date and entry.date < before]
        seen = {short(entry.key): entry.digest for entry in taken}
        own = {"turn": self.turn, "watermark": max([self.watermark, *dates]), "seen": seen}
        if not waiting:
            for name in ("etag", "last_modified"):
                value = headers.get(name.replace("_", "-"))
                if value and len(value) <= 500:
                    own[name] = value
        return _fitting({**self.feeds, self.url: own}, self.url)


def _turn(own):
    turn = own.get("turn")
    return turn if isinstance(turn, int) else 0


def _fitting(feeds, url):
    """Return the cursor, smaller where it has to be: the feed that was read longest ago gives first, url never."""
    value = {"version": 1, "feeds": feeds}
    others = sorted((name for name in feeds if name != url), key=lambda name: _turn(feeds[name]))
    for give in (lambda name: feeds[name].pop("seen", None), feeds.pop):
        for name in others:
            if len(json.dumps(value)) <= MAX_BYTES:
                return value
            give(name)
    return value
