"""What a log says of what is known, and which of its lines are signs: gathered into findings that cite lines."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from .attack import Techniques
from .known import LEVELS, Asset, Indicator, Known
from .rules import SEVERITIES, Match, Rules
from .series import Series
from .timestamps import Clock

MOST_FINDINGS = 20_000  # kept apart
MOST_SOURCES = 20_000  # of failed logins
MOST_LINES = 10  # cited of one finding
_TEXT = 300  # characters of a line that is shown


class Finding:
    """One thing that lines say."""

    __slots__ = ("kind", "title", "subject", "severity", "techniques", "count", "lines", "first", "last", "begin", "end", "assets", "why", "sources")

    def __init__(self, kind: str, title: str, subject: str, severity: str, techniques: List[str]) -> None:
        self.kind, self.title, self.subject, self.severity, self.techniques = kind, title, subject, severity, techniques
        self.count = 0
        self.lines: List[Tuple[int, str]] = []
        self.first = self.last = 0
        self.begin: Optional[float] = None
        self.end: Optional[float] = None
        self.assets: Dict[str, str] = {}  # name to criticality
        self.sources: List[str] = []
        self.why = ""

    def add(self, number: int, line: str, at: Optional[float], assets: List[Asset]) -> None:
        """Count a line that says so."""
        self.count += 1
        self.first = self.first or number
        self.last = number
        if len(self.lines) < MOST_LINES:
            self.lines.append((number, line[:_TEXT]))
        if at is not None:
            self.begin = at if self.begin is None else min(self.begin, at)
            self.end = at if self.end is None else max(self.end, at)
        for asset in assets:
            if len(self.assets) < 20:
                self.assets[asset.name] = asset.criticality

    @property
    def score(self) -> int:
        """Severity 1 to 3, times how critical the most critical asset named is: 1 to 4, 2 where no asset is."""
        worst = max((LEVELS[level] for level in self.assets.values()), default=2)
        return SEVERITIES[self.severity] * worst * (10 if self.kind in ("indicator", "brute_force_succeeded") else 8)


class _Logins:
    """The logins from one address."""

    __slots__ = ("failed", "users", "finding", "accepted")

    def __init__(self) -> None:
        self.failed = 0
        self.users: Set[str] = set()
        self.finding: Optional[Finding] = None
        self.accepted: Optional[Finding] = None


class Analysis:
    """Reads one log, line by line."""

    def __init__(self, known: Known, rules: bool, threshold: int, year: Optional[int]) -> None:
        self.clock = Clock(year)
        self.lines = 0
        self.matched = 0
        self.beyond = 0  # lines whose finding had no room
        self.assets: Dict[str, List[Any]] = {}
        self.series = Series("lines")
        self._known = known
        self._rules = Rules() if rules else None
        self._threshold = threshold
        self._findings: Dict[Tuple[str, str], Finding] = {}
        self._logins: Dict[str, _Logins] = {}

    def read(self, lines: List[str]) -> Iterator[Dict[str, Any]]:
        """Look at the next lines; what stands in the table for each that says something."""
        lows = [line.lower() for line in lines]
        candidates = self._known.candidates(lows)
        if self._rules is not None:
            candidates |= self._rules.candidates(lows)
        before, self.lines = self.lines, self.lines + len(lines)
        for i in sorted(candidates):
            entry = self._add(before + i + 1, lines[i], lows[i])
            if entry is not None:
                yield entry

    def _add(self, number: int, line: str, low: str) -> Optional[Dict[str, Any]]:
        known = self._known.found(low)
        signs = self._rules.found(low) if self._rules is not None else []
        if not known and not signs:
            return None
        assets = [one for one in known if isinstance(one, Asset)]
        indicators = [one for one in known if isinstance(one, Indicator)]
        at = self._time(line)
        for asset in assets:
            seen = self.assets.setdefault(asset.name, [asset, 0, number, number, 0])
            seen[1] += 1
            seen[3] = number
            seen[4] += 1 if indicators or signs else 0
        if not indicators and not signs:
            return None
        self.matched += 1
        if at is not None:
            self.series.add(int(at // 1), 1)
        for one in indicators:
            self._finding("indicator", one.value, "the indicator %s (%s) is in the log" % (one.value, one.type), "high", [], one.source, number, line, at, assets)
        for sign in signs:
            self._sign(sign, number, line, at, assets)
        return {
            "line": number, "time": self.clock.show(at), "indicators": [one.value for one in indicators], "signs": sorted({s.rule.id for s in signs}),
            "techniques": sorted({s.rule.technique for s in signs}), "assets": [one.name for one in assets], "text": line[:_TEXT],
        }  # fmt: skip

    def _time(self, line: str) -> Optional[float]:
        start = line.lstrip("[<\"'")[:80]
        at = self.clock.read(start)
        if at is None and start[:1].isdigit() and ">" in start[:4]:
            at = self.clock.read(start[start.index(">") + 1 :])
        if at is None:
            head = line[:600]
            for i, c in enumerate(head):  # a year that begins a time anywhere in the first characters
                if c == "2" and head[i + 4 : i + 5] in ("-", "/") and not head[i - 1 : i].isdigit():
                    at = self.clock.read(head[i:])
                    if at is not None:
                        break
        if at is None and "[" in line[:200]:
            at = self.clock.read(line[line.index("[") + 1 :][:40])
        return at

    def _finding(self, kind: str, subject: str, title: str, severity: str, techniques: List[str], source: str, number: int, line: str, at: Optional[float],
                 assets: List[Asset]) -> Optional[Finding]:  # fmt: skip
        finding = self._findings.get((kind, subject))
        if finding is None:
            if len(self._findings) >= MOST_FINDINGS:
                self.beyond += 1
                return None
            finding = self._findings[kind, subject] = Finding(kind, title, subject, severity, techniques)
        if source and source not in finding.sources and len(finding.sources) < 5:
            finding.sources.append(source)
        finding.add(number, line, at, assets)
        return finding

    def _sign(self, sign: Match, number: int, line: str, at: Optional[float], assets: List[Asset]) -> None:
        rule = sign.rule
        if rule.id in ("login_failed", "login_accepted"):
            self._login(sign, number, line, at, assets)
        else:
            self._finding("sign", rule.id, rule.title, rule.severity, [rule.technique], "", number, line, at, assets)

    def _login(self, sign: Match, number: int, line: str, at: Optional[float], assets: List[Asset]) -> None:
        source = sign.source or "an unnamed source"
        logins = self._logins.get(source)
        if sign.rule.id == "login_failed":
            if logins is None:
                if len(self._logins) >= MOST_SOURCES:
                    self.beyond += 1
                    return
                logins = self._logins[source] = _Logins()
                logins.finding = Finding("login_failed", "logins failed", source, "low", ["T1110"])
            logins.failed += 1
            if sign.user and len(logins.users) < 100:
                logins.users.add(sign.user)
            assert logins.finding is not None
            logins.finding.add(number, line, at, assets)
        elif logins is not None and logins.failed >= self._threshold:
            if logins.accepted is None:
                logins.accepted = Finding("brute_force_succeeded", "a login was accepted after many had failed", source, "high", ["T1110", "T1078"])
                logins.accepted.why = "%d logins from %s had failed, of %d names, lines %d to %d, when one of %s was accepted" % (
                    logins.failed, source, len(logins.users), logins.finding.first if logins.finding else 0, logins.finding.last if logins.finding else 0, sign.user or "an unnamed user")  # fmt: skip
            logins.accepted.add(number, line, at, assets)

    def findings(self) -> List[Finding]:
        """All findings, the highest score first."""
        found = list(self._findings.values())
        for source, logins in self._logins.items():
            if logins.finding is not None and logins.failed >= self._threshold:
                one = logins.finding
                spray = len(logins.users) >= max(5, logins.failed // 2)
                one.kind, one.severity = "brute_force", "medium"
                one.title = "many logins failed, of many names" if spray else "many logins failed"
                one.techniques = ["T1110.003" if spray else "T1110.001"]
                one.why = "%d logins from %s failed, of %d names" % (logins.failed, source, len(logins.users))
                found.append(one)
            if logins.accepted is not None:
                found.append(logins.accepted)
        return sorted(found, key=lambda one: (-one.score, one.kind != "brute_force_succeeded", one.first, one.subject))

    def failed_logins(self) -> int:
        """All logins that failed, with those of sources that tried only a few times."""
        return sum(logins.failed for logins in self._logins.values())


def shown(finding: Finding, clock: Clock, table: Techniques) -> Dict[str, Any]:
    """A finding as it stands in the result."""
    names = []
    for id in finding.techniques:
        entry = table.resolve(id) or {"name": "", "tactics": [], "url": ""}
        names.append({"id": id, "name": entry["name"] or None, "tactics": entry["tactics"]})
    return {
        "kind": finding.kind, "subject": finding.subject, "title": finding.title, "why": finding.why or finding.title, "severity": finding.severity,
        "score": finding.score, "count": finding.count, "first_line": finding.first, "last_line": finding.last, "begin": clock.show(finding.begin),
        "end": clock.show(finding.end), "techniques": names, "assets": [{"name": n, "criticality": c} for n, c in sorted(finding.assets.items())],
        "sources": finding.sources, "lines": [{"line": n, "text": text} for n, text in finding.lines],
    }  # fmt: skip
