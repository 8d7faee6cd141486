"""Builds the profile of one log, record by record."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import formats, jsonrecords, tables
from .counting import Buckets, Capped
from .formats import Record
from .shapes import number, shape
from .textlines import Text, Unreadable
from .timestamps import Clock

MOST_FIELDS = 500
MOST_SOURCES = 5000
MOST_TEMPLATES = 10000
MOST_DISTINCT = 1000
MOST_GAPS = 200
SAMPLED_AFTER = 5000  # values of a field are all looked at in this many records, then in every 16th
EXAMPLE_CHARS = 120

_CONTINUES = re.compile(r"\s+\S|Caused by: |Traceback |\.\.\. \d+ more|[}\])]\s*[;,]?$|[\w.$]+(?:Error|Exception)\b")
_SECRET = re.compile(r"passw|pwd|secret|token|authori[sz]ation|api.?key|cookie|credential|private.?key", re.IGNORECASE)
_VARIABLE = re.compile(
    r"(?P<UUID>\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b)"
    r"|(?P<IP>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:){2,7}:?(?:[0-9A-Fa-f]{1,4})?(?![\w:]))"
    r'|(?P<STR>"[^"]*")'
    r"|(?P<HEX>\b0x[0-9A-Fa-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b)"
    r"|(?P<NUM>\d+)"
)


def template(message: str) -> str:
    """The message with what varies replaced by its kind."""
    return _VARIABLE.sub(lambda found: "<%s>" % found.lastgroup, message[:300])


class Field:
    """What the values of one field were."""

    __slots__ = ("records", "shapes", "values", "looked_at", "low", "high")

    def __init__(self) -> None:
        self.records = 0
        self.shapes: Dict[str, int] = {}
        self.values = Capped(MOST_DISTINCT)
        self.looked_at = 0
        self.low: Optional[float] = None
        self.high: Optional[float] = None

    def look(self, value: Any) -> None:
        """Take one value into account."""
        self.looked_at += 1
        kind = shape(value)
        self.shapes[kind] = self.shapes.get(kind, 0) + 1
        if kind not in ("empty", "structure"):
            self.values.add(str(value)[:EXAMPLE_CHARS])
        if kind in ("integer", "decimal"):
            n = number(value)
            if n is not None:
                self.low = n if self.low is None or n < self.low else self.low
                self.high = n if self.high is None or n > self.high else self.high

    def shown(self, name: str, records: int) -> Dict[str, Any]:
        """The field in the answer."""
        shapes = sorted(self.shapes.items(), key=lambda item: (-item[1], item[0]))
        secret = _SECRET.search(name) is not None
        answer: Dict[str, Any] = {
            "name": name,
            "records": self.records,
            "share": _share(self.records, records),
            "shapes": [{"shape": kind, "count": n} for kind, n in shapes],
            "distinct": len(self.values),
            "distinct_is_minimum": self.values.other > 0 or self.looked_at < self.records,
            "examples": ["(withheld: the name suggests a secret)"] if secret else [value for value, _ in self.values.top(3)],
        }
        if self.low is not None and self.high is not None and not secret:
            answer["min"], answer["max"] = _plain(self.low), _plain(self.high)
        return answer


class Template:
    """Lines that differ only in what varies."""

    __slots__ = ("count", "first_line", "example")

    def __init__(self, first_line: int, example: str) -> None:
        self.count = 0
        self.first_line = first_line
        self.example = example


class Profile:
    """The profile of one log; add every record, then ask for the answer."""

    def __init__(self, text: Text, year: Optional[int], gap_seconds: Optional[float], max_records: Optional[int]) -> None:
        self.text = text
        self.clock = Clock(year)
        self.records = 0
        self.first_lines: Dict[str, int] = {}
        self.formats: Dict[str, int] = {}
        self.hosts = Capped(MOST_SOURCES)
        self.sources = Capped(MOST_SOURCES)
        self.severities: Dict[str, int] = {}
        self.fields: Dict[str, Field] = {}
        self.fields_left_out = 0
        self.templates: Dict[str, Template] = {}
        self.other_templates = 0
        self.hours = Buckets()
        self.timed = 0
        self.first: Optional[float] = None
        self.last: Optional[float] = None
        self.backwards = 0
        self.blank = 0
        self.malformed = 0
        self.comments = 0
        self.continuations = 0
        self.multi_line = 0
        self.longest = 1
        self.not_times = 0
        self.gap_seconds = gap_seconds
        self.gaps: List[Tuple[float, float]] = []
        self.damage: List[str] = []
        self.stopped = False
        self._year_given = year is not None
        self._max_records = max_records
        self._previous: Optional[float] = None
        self._extent = 1  # lines of the record at hand

    def read(self) -> None:
        """Read the whole text."""
        head = self.text.head()
        self.clock.anchor(head)
        if jsonrecords.is_document(head):
            records: Iterator[Tuple[Record, int]] = self._json()
        elif tables.is_event_xml(head):
            records = tables.event_records(iter(self.text), self._bad)
        else:
            lines = iter(self.text)
            header = tables.csv_header(head.split("\n")[:-1] if len(head) >= 65536 else head.split("\n"))
            if header and formats.Lines().read(head.split("\n", 1)[0]) is None:
                for blank_or_header in lines:
                    if blank_or_header.strip():
                        break
                records = tables.csv_records(lines, header[0], header[1], self._bad)
            else:
                self._lines(lines)
                return
        line = 2
        for record, used in records:
            self.add(record, line)
            line += used
            if used > 1:
                self._extent = used
                if record.format != "json_document":
                    self.continuations += used - 1
                    self.multi_line += 1
                    self.longest = max(self.longest, used)
            if self._full():
                return

    def _bad(self) -> None:
        self.malformed += 1

    def _json(self) -> Iterator[Tuple[Record, int]]:
        for value in jsonrecords.records(self.text.blocks(), self.damage):
            if isinstance(value, dict):
                yield formats.of_object(value, "json_document"), 1
            else:
                self.malformed += 1

    def _full(self) -> bool:
        if self._max_records is not None and self.records >= self._max_records:
            self.stopped = True
        return self.stopped

    def _lines(self, lines: Iterator[str]) -> None:
        reader = formats.Lines()
        w3c = tables.W3C()
        read: Callable[[str], Optional[Record]] = reader.read
        for n, line in enumerate(lines, 1):
            if not line or line.isspace():
                self.blank += 1
                continue
            if line[0] == "#":
                if w3c.directive(line):
                    self.comments += 1
                    continue
                if line.startswith("# "):
                    self.comments += 1
                    continue
            record = w3c.read(line) if w3c.names else None
            if record is None:
                # What is indented goes on with the record before it, unless it is a record itself.
                if self.timed and self.records and _CONTINUES.match(line) and not line.lstrip().startswith(("{", "<")):
                    record = read(line) if not line[0].isspace() else None
                    if record is None:
                        self._continue()
                        continue
                else:
                    record = read(line)
            if record is None:
                if line.lstrip()[:1] == "{":
                    self.malformed += 1
                record = Record("unknown", "", "", "", "", line, formats.NO_FIELDS)
            self.add(record, n)
            if self._full():
                return

    def _continue(self) -> None:
        self.continuations += 1
        if self._extent == 1:
            self.multi_line += 1
        self._extent += 1
        self.longest = max(self.longest, self._extent)

    def add(self, record: Record, line: int) -> None:
        """Take one record into account; line is where it starts."""
        self._extent = 1
        self.records += 1
        format = record.format
        if format in self.formats:
            self.formats[format] += 1
        else:
            self.formats[format] = 1
            self.first_lines[format] = line
        if record.time:
            self._time(record.time)
        if record.host:
            self.hosts.add(record.host[:200])
        if record.source:
            self.sources.add(record.source[:200])
        if record.severity:
            self.severities[record.severity] = self.severities.get(record.severity, 0) + 1
        if record.fields:
            look = self.records <= SAMPLED_AFTER or self.records % 16 == 0
            fields = self.fields
            for name, value in record.fields.items():
                field = fields.get(name)
                if field is None:
                    if len(fields) >= MOST_FIELDS:
                        self.fields_left_out += 1
                        continue
                    field = fields[name] = Field()
                field.records += 1
                if look:
                    field.look(value)
        self._template(record.message, line)

    def _time(self, text: str) -> None:
        at = self.clock.read(text)
        if at is None:
            self.not_times += 1
            return
        self.timed += 1
        self.hours.add(at)
        if self.first is None or at < self.first:
            self.first = at
        if self.last is None or at > self.last:
            self.last = at
        previous = self._previous
        if previous is not None:
            if at < previous:
                self.backwards += 1
            self._gap(min(previous, at), max(previous, at))
        self._previous = at

    def _gap(self, start: float, end: float) -> None:
        """Keep the longest silences; shorter ones make room when there are too many."""
        if end - start < (self.gap_seconds or 60.0):
            return
        self.gaps.append((start, end))
        if len(self.gaps) >= 2 * MOST_GAPS:
            self.gaps = self._longest_gaps()

    def _longest_gaps(self) -> List[Tuple[float, float]]:
        return sorted(set(self.gaps), key=lambda gap: (gap[0] - gap[1], gap[0]))[:MOST_GAPS]

    def _template(self, message: str, line: int) -> None:
        text = template(message)
        found = self.templates.get(text)
        if found is None:
            if len(self.templates) >= MOST_TEMPLATES:
                self.other_templates += 1
                return
            found = self.templates[text] = Template(line, message[:300])
        found.count += 1

    # The answer.

    def answer(self) -> Dict[str, Any]:
        """The whole profile; every list is complete but for what the caps left out."""
        if not self.records:
            if self.damage or self.malformed:
                raise Unreadable("ARTIFACT_UNREADABLE", "nothing in the file can be read: %s" % (self.damage or ["its only content is malformed"])[0])
        order = sorted(self.formats, key=lambda name: (-self.formats[name], name))
        text = self.text
        primary = order[0] if order else "unknown"
        return {
            "format": {"name": primary, "description": formats.DESCRIPTIONS[primary], "share": _share(self.formats.get(primary, 0), self.records)},
            "formats": [
                {"name": name, "description": formats.DESCRIPTIONS[name], "records": self.formats[name], "share": _share(self.formats[name], self.records), "first_line": self.first_lines[name]}
                for name in order
            ],
            "totals": {
                "records": self.records,
                "lines": text.lines,
                "bytes": text.bytes,
                "blank_lines": self.blank,
                "comment_lines": self.comments,
                "malformed": self.malformed,
                "complete": not self.stopped and not text.damage and not self.damage,
            },
            "encoding": {
                "name": text.encoding,
                "byte_order_mark": text.bom,
                "newline": text.newline,
                "compressed": text.compressed,
                "latin1_lines": text.latin1_lines,
                "nul_bytes": text.nul_bytes,
                "truncated_lines": text.truncated_lines,
            },
            "time": self._times(),
            "rate": self._rate(),
            "gaps": self._gaps(),
            "multi_line": {"records": self.multi_line, "continuation_lines": self.continuations, "longest": self.longest},
            "hosts": [{"name": name, "records": n} for name, n in self.hosts.top(MOST_SOURCES)],
            "sources": [{"name": name, "records": n} for name, n in self.sources.top(MOST_SOURCES)],
            "severities": [{"name": name, "records": self.severities[name]} for name in formats.SEVERITIES if name in self.severities],
            "fields": [
                self.fields[name].shown(name, self.records) for name in sorted(self.fields, key=lambda name: (-self.fields[name].records, name))
            ],
            "templates": [
                {"template": name, "count": t.count, "share": _share(t.count, self.records), "first_line": t.first_line, "example": t.example}
                for name, t in sorted(self.templates.items(), key=lambda item: (-item[1].count, item[1].first_line))
            ],
            "notes": self._notes(),
        }

    def _times(self) -> Dict[str, Any]:
        clock = self.clock
        zone = "none"
        if clock.read_times:
            zone = "given" if clock.zoned == clock.read_times else "mixed" if clock.zoned else "not given"
        span = self.last - self.first if self.first is not None and self.last is not None else None
        return {
            "first": clock.show(self.first),
            "last": clock.show(self.last),
            "span_seconds": None if span is None else round(span, 3),
            "records_with_time": self.timed,
            "zone": zone,
            "year_known": clock.knows_year,
            "out_of_order": self.backwards,
        }

    def _rate(self) -> Dict[str, Any]:
        counts = self.hours.counts
        span = (self.last - self.first) if self.first is not None and self.last is not None else 0.0
        return {
            "per_hour": round(self.timed / (span / 3600), 2) if span >= 1 else None,
            "bucket_seconds": self.hours.step,
            "buckets": [{"start": self.clock.show(key * self.hours.step), "records": counts[key]} for key in sorted(counts)],
        }

    def _gaps(self) -> List[Dict[str, Any]]:
        """Silences as long as asked for; if nothing was asked for, those of ten mean intervals, and at least five minutes."""
        least = self.gap_seconds
        if least is None:
            span = (self.last - self.first) if self.first is not None and self.last is not None else 0.0
            least = max(300.0, 10 * span / max(self.timed - 1, 1))
        found = [gap for gap in self._longest_gaps() if gap[1] - gap[0] >= least]
        return [{"from": self.clock.show(a), "to": self.clock.show(b), "seconds": round(b - a, 3)} for a, b in found]

    def _notes(self) -> List[str]:
        notes = list(self.damage)
        text, clock = self.text, self.clock
        if text.damage:
            notes.append(text.damage)
        if not self.records:
            notes.append("The file holds no records.")
        if self.stopped:
            notes.append("Reading stopped after %d records, as asked; what follows is not in this profile." % self.records)
        if text.latin1_lines:
            notes.append("%d lines are not UTF-8 and were read as Latin-1." % text.latin1_lines)
        if text.nul_bytes:
            notes.append("%d NUL bytes were left out; a log that was preallocated or cut off by a crash has such." % text.nul_bytes)
        if text.truncated_lines:
            notes.append("%d lines were too long and were cut." % text.truncated_lines)
        if not clock.knows_year:
            notes.append("The times have no year: it is left out here; give year to have it.")
        elif clock.yearless and not self._year_given:
            notes.append("The year of times that have none is that of the first dated line.")
        if self.timed and clock.zoned < clock.read_times:
            notes.append("Times without a zone are taken as they stand.")
        if self.not_times:
            notes.append("%d values where a time was expected are none." % self.not_times)
        if self.backwards and self.backwards > self.timed / 2:
            notes.append("The newest records come first.")
        if self.malformed:
            notes.append("%d records are malformed." % self.malformed)
        if self.fields_left_out:
            notes.append("More than %d different fields: %d values of others are not counted." % (MOST_FIELDS, self.fields_left_out))
        for what, counter in (("hosts", self.hosts), ("sources", self.sources)):
            if counter.other:
                notes.append("More than %d different %s: %d records of others are not listed." % (MOST_SOURCES, what, counter.other))
        if self.other_templates:
            notes.append("More than %d different templates: %d records of others are not listed." % (MOST_TEMPLATES, self.other_templates))
        if self.hours.step != Buckets.STEPS[0]:
            notes.append("The time range is too long for hours; buckets are of %d days." % (self.hours.step // 86400))
        if self.hours.other:
            notes.append("%d records fall outside the buckets." % self.hours.other)
        if self.records > SAMPLED_AFTER and self.fields:
            notes.append("Shapes and examples of fields come from the first %d records and every 16th after them." % SAMPLED_AFTER)
        return notes


def _share(n: int, of: int) -> float:
    return round(n / of, 4) if of else 0.0


def _plain(n: float) -> Any:
    return int(n) if n == int(n) and abs(n) < 2**53 else n
