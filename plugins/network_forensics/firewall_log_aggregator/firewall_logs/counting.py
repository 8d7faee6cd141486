"""Counters that cannot grow without end."""

from __future__ import annotations

from typing import Dict, List, Tuple


class Capped:
    """Counts keys, up to a number of different ones; what comes later than those is counted as other."""

    def __init__(self, most: int) -> None:
        self.counts: Dict[str, int] = {}
        self.other = 0
        self._most = most

    def add(self, key: str, n: int = 1) -> bool:
        """Count a key; False if it went to other."""
        counts = self.counts
        if key in counts:
            counts[key] += n
            return True
        if len(counts) < self._most:
            counts[key] = n
            return True
        self.other += n
        return False

    def __len__(self) -> int:
        return len(self.counts)

    def top(self, n: int) -> List[Tuple[str, int]]:
        """The n most frequent, then by key."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:n]


class Buckets:
    """Counts by hour; by day, then by 30 days where the hours would be too many."""

    STEPS = (3600, 86400, 30 * 86400)

    def __init__(self, most: int = 20000) -> None:
        self.step = self.STEPS[0]
        self.counts: Dict[int, int] = {}
        self.other = 0
        self._most = most

    def add(self, at: float) -> None:
        """Count a moment."""
        key = int(at // self.step)
        if key in self.counts:
            self.counts[key] += 1
        elif len(self.counts) < self._most:
            self.counts[key] = 1
        elif self.step == self.STEPS[-1]:
            self.other += 1
        else:
            self._coarsen()
            self.add(at)

    def _coarsen(self) -> None:
        wider = self.STEPS[self.STEPS.index(self.step) + 1]
        counts: Dict[int, int] = {}
        for key, n in self.counts.items():
            new = key * self.step // wider
            counts[new] = counts.get(new, 0) + n
        self.step, self.counts = wider, counts
