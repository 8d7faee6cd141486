"""Times as logs write them.

Seconds are counted from 1970 in UTC; a time without a zone is taken as it
stands. A time without a year belongs to the year that [Clock] is at, which
moves on when a log wraps from December to January.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache
from typing import Optional, Tuple

_MONTHS = {m: i + 1 for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())}
_ISO = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|UTC|[+-]\d\d:?\d\d)?")
_TAIL = re.compile(r"(?:[.,](\d{1,9}))?\s?(Z|UTC|[+-]\d\d:?\d\d)?")  # of _ISO, behind the seconds
_TO_SECONDS, _TO_ZONE = 19, 36  # how far _ISO reaches
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) {1,2}(\d{1,2}) (?:(\d{4}) )?(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?: (\d{4})(?!\d))?")
_ACCESS = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?: ([+-]\d{4}))?")
_AMERICAN = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}),? (\d{1,2}):(\d\d):(\d\d)(?: ?([AP]M))?")
_EPOCH = re.compile(r"(\d{10}|\d{13}|\d{16}|\d{19})(?:\.(\d{1,9}))?$")
_DATED = re.compile(r"(?<!\d)(\d{4})[-/]\d\d[-/]\d\d[T ]\d\d:\d\d")
_NO_YEAR = 2000  # a leap year, so that 29 February is a day
_HALF_YEAR = 180 * 86400


@lru_cache(maxsize=4096)
def _midnight(year: int, month: int, day: int) -> int:
    """Seconds at the start of a day; raises ValueError for a day there is not."""
    return (datetime.date(year, month, day).toordinal() - 719163) * 86400


@lru_cache(maxsize=64)
def _offset(zone: Optional[str]) -> int:
    if not zone or zone in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds


def _fraction(digits: Optional[str]) -> float:
    return float("0." + digits) if digits else 0.0


@lru_cache(maxsize=4096)
def _tail(text: str) -> Tuple[float, int, bool]:
    """The fraction, the offset of the zone and whether a zone is named, in what follows the seconds of _ISO."""
    found = _TAIL.match(text)
    fraction, zone = found.groups() if found else (None, None)
    return _fraction(fraction), _offset(zone), bool(zone)


@lru_cache(maxsize=1024)
def _shown(second: int, year: bool, utc: bool) -> Optional[str]:
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=second)
    except OverflowError:
        return None
    if not year:
        return moment.strftime("%m-%dT%H:%M:%S")
    return moment.isoformat() + ("Z" if utc else "")


class Clock:
    """Reads the times of one log in the order of its lines."""

    def __init__(self, year: Optional[int] = None) -> None:
        self.yearless = 0  # times read that had no year
        self.zoned = 0  # times read that named their zone
        self.read_times = 0
        self._given = year is not None
        self._year = year or _NO_YEAR
        self._last: Optional[float] = None
        # Most lines have the second of the line before, and many its whole time: what these came to.
        self._head: Optional[str] = None
        self._head_at = 0
        self._text: Optional[str] = None
        self._text_at = 0.0
        self._text_zoned = self._text_yearless = 0

    def anchor(self, head: str) -> None:
        """Take the year of times without one from the first dated line in the start of the log, if there is one."""
        if self._given:
            return
        for line in head.split("\n")[:500]:
            found = _DATED.search(line[:200])
            if found and 1980 <= int(found.group(1)) <= 2199:
                self._year, self._given = int(found.group(1)), True
                return

    @property
    def knows_year(self) -> bool:
        """Whether the year of the times read is known."""
        return self._given or not self.yearless

    def read(self, text: str) -> Optional[float]:
        """The time that text starts with, or None."""
        if text[:_TO_SECONDS] == self._head:
            fraction, offset, zoned = _tail(text[_TO_SECONDS:_TO_ZONE])
            self.zoned += zoned
            self.read_times += 1
            return self._head_at + fraction - offset
        if text == self._text:
            self.zoned += self._text_zoned
            self.yearless += self._text_yearless
            self.read_times += 1
            return self._text_at
        zoned_before, yearless_before = self.zoned, self.yearless
        try:
            at = self._read(text)
        except (ValueError, OverflowError):
            return None
        if at is not None:
            self.read_times += 1
            self._text, self._text_at = text, at
            self._text_zoned, self._text_yearless = self.zoned - zoned_before, self.yearless - yearless_before
        return at

    def _read(self, text: str) -> Optional[float]:
        found = _ISO.match(text)
        if found:
            y, mo, d, h, mi, s, frac, zone = found.groups()
            if zone:
                self.zoned += 1
            second = _midnight(int(y), int(mo), int(d)) + int(h) * 3600 + int(mi) * 60 + int(s or 0)
            if s:
                self._head, self._head_at = text[:_TO_SECONDS], second
            return second + _fraction(frac) - _offset(zone)
        found = _SYSLOG.match(text)
        if found is None and text[3:4] == " ":
            found = _SYSLOG.match(text, 4)  # after the day of the week
        if found:
            return self._syslog(found)
        found = _ACCESS.match(text)
        if found:
            day, month, y, h, mi, s, frac, zone = found.groups()
            if zone:
                self.zoned += 1
            return _midnight(int(y), _MONTHS.get(month, 0), int(day)) + int(h) * 3600 + int(mi) * 60 + int(s) + _fraction(frac) - _offset(zone)
        found = _EPOCH.match(text)
        if found:
            digits, frac = found.groups()
            at = int(digits) / float(10 ** (len(digits) - 10))
            if not 3e8 <= at < 5e9:
                return None
            self.zoned += 1
            return at + (_fraction(frac) if len(digits) == 10 else 0.0)
        found = _AMERICAN.match(text)
        if found:
            month, day, y, h, mi, s, half = found.groups()
            hour = int(h) % 12 + (12 if half == "PM" else 0) if half else int(h)
            return float(_midnight(int(y), int(month), int(day)) + hour * 3600 + int(mi) * 60 + int(s))
        return None

    def _syslog(self, found: "re.Match[str]") -> Optional[float]:
        month, day, year, h, mi, s, frac, late = found.groups()
        within = int(h) * 3600 + int(mi) * 60 + int(s) + _fraction(frac)
        number = _MONTHS.get(month)
        if number is None:
            return None
        if year or late:
            return _midnight(int(year or late), number, int(day)) + within
        self.yearless += 1
        at = self._in_year(number, int(day)) + within
        if self._last is not None and at < self._last - _HALF_YEAR:
            self._year += 1
            at = self._in_year(number, int(day)) + within
        elif self._last is not None and at > self._last + _HALF_YEAR:
            return self._in_year(number, int(day), -1) + within  # a late line of the year before
        self._last = at
        return at

    def _in_year(self, month: int, day: int, later: int = 0) -> int:
        year = self._year + later
        if (month, day) == (2, 29):
            try:
                return _midnight(year, 2, 29)
            except ValueError:
                return _midnight(year, 3, 1)
        return _midnight(year, month, day)

    def show(self, at: Optional[float]) -> Optional[str]:
        """A time as text, to the second; without its year where that is not known."""
        return None if at is None else _shown(int(at // 1), self.knows_year, 0 < self.zoned == self.read_times)
