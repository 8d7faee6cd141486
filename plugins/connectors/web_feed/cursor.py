"""How far each feed was read, in the one cursor of a knowledge base.

    {"version": 1, "feeds": {URL: {"etag", "last_modified", "watermark", "seen": {KEY: DIGEST}}}}

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
        self.feeds = dict(feeds) if isinstance(feeds, dict) else {}
        self.url = url
        own = self.feeds.pop(url, None)
        own = own if isinstance(own, dict) else {}
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
        own = {"watermark": max([self.watermark, *dates]), "seen": {short(entry.key): entry.digest for entry in taken}}
        if not waiting:
            for name in ("etag", "last_modified"):
                value = headers.get(name.replace("_", "-"))
                if value and len(value) <= 500:
                    own[name] = value
        return _fitting({**self.feeds, self.url: own})


def _fitting(feeds):
    """Return the cursor, smaller where it has to be: the feed that was read longest ago gives first."""
    value = {"version": 1, "feeds": feeds}
    for drop in (_without_seen, lambda own: None):
        for url in list(feeds)[:-1]:
            if len(json.dumps(value)) <= MAX_BYTES:
                return value
            left = drop(feeds[url])
            if left is None:
                del feeds[url]
            else:
                feeds[url] = left
    return value


def _without_seen(own):
    return {name: part for name, part in own.items() if name != "seen"} if isinstance(own, dict) else None
