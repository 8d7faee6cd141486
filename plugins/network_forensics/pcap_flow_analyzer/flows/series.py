"""Counts over time, in at most so many steps, whatever the span turns out to be."""

from __future__ import annotations

import datetime
from typing import Any, Dict, List, Optional

_WIDTHS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800, 2592000, 31536000)
_EPOCH = datetime.datetime(1970, 1, 1)


class Series:
    """Numbers that are added up by time; the steps grow where there would be too many."""

    def __init__(self, *names: str, most: int = 120) -> None:
        self._names = names
        self._most = most
        self._width = 0  # index into _WIDTHS
        self._steps: Dict[int, List[int]] = {}

    def add(self, seconds: int, *numbers: int) -> None:
        """Add numbers, one for each name, at a time in whole seconds since 1970."""
        key = seconds // _WIDTHS[self._width]
        step = self._steps.get(key)
        if step is None:
            while len(self._steps) >= self._most and self._width < len(_WIDTHS) - 1:
                self._widen()
                key = seconds // _WIDTHS[self._width]
            step = self._steps.setdefault(key, [0] * len(self._names))
        for i, number in enumerate(numbers):
            step[i] += number

    def _widen(self) -> None:
        before, self._width = _WIDTHS[self._width], self._width + 1
        steps: Dict[int, List[int]] = {}
        for key, step in self._steps.items():
            into = steps.setdefault(key * before // _WIDTHS[self._width], [0] * len(self._names))
            for i, number in enumerate(step):
                into[i] += number
        self._steps = steps

    def shown(self) -> Dict[str, Any]:
        """The steps that have something, in order; times are when a step begins."""
        width = _WIDTHS[self._width]
        points = [dict(zip(self._names, step), time=moment(key * width * 1000000000)) for key, step in sorted(self._steps.items())]
        return {"step_seconds": width, "points": points}


def moment(nanoseconds: Optional[int]) -> Optional[str]:
    """A time as text in UTC, with as many decimals as it needs; None where there is none."""
    if nanoseconds is None:
        return None
    seconds, part = divmod(nanoseconds, 1000000000)
    try:
        text = (_EPOCH + datetime.timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        return None
    return text + ((".%09d" % part).rstrip("0") if part else "") + "Z"


def parsed(text: str) -> int:
    """Nanoseconds since 1970 of a time in ISO 8601, UTC where it names no zone; raises ValueError."""
    when = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
    if when.tzinfo is not None:
        when = when.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    since = when - _EPOCH
    return (since.days * 86400 + since.seconds) * 1000000000 + since.microseconds * 1000
