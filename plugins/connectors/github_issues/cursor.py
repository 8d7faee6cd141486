"""How far each repository was read, in the one cursor of a knowledge base.

    {"version": 1, "repositories": {KEY: {"turn", "since", "at_since": [NUMBER], "etag"}}}

The key is the repository with what is asked for of it. Issues come in the order
of their last change. since is that of the last one that was taken in, at_since
are those that changed at that second: GitHub is asked for what changed at since
or later, so these come again. etag is what the request from since was last
answered with. A cursor that is lost costs time and nothing else.
"""

import json

MAX_BYTES = 56 << 10  # the host keeps 64 KiB
MAX_AT_SINCE = 3000


class Cursor:
    """The cursor of a knowledge base, as far as it is about one repository."""

    def __init__(self, kept, key, since=""):
        all = kept.get("repositories") if isinstance(kept, dict) and kept.get("version") == 1 else None
        self.all = {name: own for name, own in all.items() if isinstance(own, dict)} if isinstance(all, dict) else {}
        self.turn = 1 + max((_turn(own) for own in self.all.values()), default=0)
        self.key = key
        own = self.all.pop(key, {})
        self.since = own.get("since") or since
        self.at_since = set(own.get("at_since") or ())
        self.etag = own.get("etag") or ""

    def has(self, issue):
        """Report whether an issue was taken in as it is."""
        return issue["updated_at"] < self.since or (issue["updated_at"] == self.since and issue["number"] in self.at_since)

    def pass_by(self, issue):
        """Move behind an issue, which was taken in or left out for good."""
        if issue["updated_at"] > self.since:
            self.since, self.at_since = issue["updated_at"], set()
            self.etag = ""
        if len(self.at_since) < MAX_AT_SINCE:  # more are taken in again, and found to be the same
            self.at_since.add(issue["number"])

    @property
    def value(self):
        """What to keep, bounded."""
        own = {"turn": self.turn, "since": self.since, "at_since": sorted(self.at_since), "etag": self.etag[:500]}
        all = {**dict(sorted(self.all.items(), key=lambda item: _turn(item[1]))), self.key: own}
        while len(all) > 1 and len(json.dumps(all)) > MAX_BYTES:
            del all[next(iter(all))]  # the one that was read longest ago
        return {"version": 1, "repositories": all}


def _turn(own):
    turn = own.get("turn")
    return turn if isinstance(turn, int) else 0
