"""Formats whose lines mean nothing without a header or without their neighbours:
delimited text, W3C extended logs, Windows events as XML."""

from __future__ import annotations

import csv
import html
import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from .formats import Record, of_object, severity

_NAME = re.compile(r"\s*[A-Za-z_@#][\w .@/()#:-]{0,80}$")
_EVENT_ID = {"event id", "eventid", "eventrecordid"}
_EVENT_OTHER = {"date and time", "timecreated", "source", "task category", "providername", "leveldisplayname", "keywords", "machinename", "computer", "logname", "level"}
_LONGEST_EVENT = 1 << 20


def csv_header(lines: List[str]) -> Optional[Tuple[str, List[str]]]:
    """The delimiter and the names of a header, if the lines begin with one."""
    lines = [line for line in lines if line.strip()][:6]
    if len(lines) < 2:
        return None
    for delimiter in (",", ";", "\t", "|"):
        if lines[0].count(delimiter) < 2:
            continue
        try:
            names = next(csv.reader([lines[0]], delimiter=delimiter))
            row = next(csv.reader([lines[1]], delimiter=delimiter))
        except (csv.Error, StopIteration):
            continue
        if not all(_NAME.match(name) for name in names) or len(set(names)) != len(names):
            continue
        # The last cell of the first row may go on in the next line, and exports drop or add an empty last cell.
        if abs(len(row) - len(names)) <= 1 or lines[1].count('"') % 2:
            return delimiter, [name.strip() for name in names]
    return None


def csv_format(names: Iterable[str]) -> str:
    """Whether a header is that of exported Windows events."""
    lower = {name.lower() for name in names}
    events = bool(lower & _EVENT_ID) or {"id", "timecreated"} <= lower
    return "windows_event_csv" if events and len(lower & _EVENT_OTHER) >= 2 else "csv"


def csv_records(lines: Iterator[str], delimiter: str, names: List[str], malformed: Callable[[], None]) -> Iterator[Tuple[Record, int]]:
    """The rows after the header, each with the number of lines it took."""
    kind = csv_format(names)
    taken = [0]

    def counted() -> Iterator[str]:
        for line in lines:
            taken[0] += 1
            yield line + "\n"

    source = counted()
    csv.field_size_limit(1 << 20)
    while True:
        rows = csv.reader(source, delimiter=delimiter)
        try:
            for row in rows:
                used, taken[0] = taken[0], 0
                if not row:
                    continue
                if len(row) < len(names) - 1 or len(row) > len(names) + 1:
                    malformed()
                fields = {name: cell.strip() for name, cell in zip(names, row)}
                if len(row) > len(names):
                    fields["(extra)"] = row[len(names)].strip()
                yield of_object(fields, kind), used
            return
        except csv.Error:
            taken[0] = 0
            malformed()


class W3C:
    """Reads a W3C extended log; its directives say which columns follow."""

    def __init__(self) -> None:
        self.names: List[str] = []
        self.software = ""

    def directive(self, line: str) -> bool:
        """Take a line that begins with #; whether it was one of the format's."""
        if line.startswith("#Fields:"):
            self.names = line[8:].split()
            return True
        if line.startswith("#Software:"):
            self.software = line[10:].strip()
            return True
        return line.startswith(("#Version:", "#Date:", "#Start-Date:", "#End-Date:", "#Remark:", "#Time Format:"))

    def read(self, line: str) -> Optional[Record]:
        """The record of a row, or None if its columns are not the header's."""
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) != len(self.names):
            return None
        fields: Dict[str, Any] = {name: cell for name, cell in zip(self.names, cells) if cell != "-"}
        time = "%s %s" % (fields.pop("date", ""), fields.pop("time", ""))
        path = fields.get("cs-uri-stem", "")
        message = "%s %s %s" % (fields.get("cs-method", ""), path, fields.get("sc-status", "")) if path else line
        host = fields.get("s-computername") or fields.get("s-ip") or ""
        return Record("w3c_extended", time.strip(), host, fields.get("s-sitename") or self.software, "", message, fields)


def is_event_xml(head: str) -> bool:
    """Whether text that starts so is Windows events as XML."""
    return re.match(r"\ufeff?\s*(?:<\?xml[^>]*>\s*)?(?:<Events\b[^>]*>\s*)?<Event[\s>]", head) is not None


_ELEMENT = re.compile(r"<(Data|Computer|EventID|Level|Channel|Message|Task|EventRecordID|Opcode)\b([^>]*)>([^<]*)</")
_PROVIDER = re.compile(r"<Provider\b[^>]*\bName=['\"]([^'\"]*)")
_TIME = re.compile(r"<TimeCreated\b[^>]*\bSystemTime=['\"]([^'\"]*)")
_DATA_NAME = re.compile(r"\bName=['\"]([^'\"]*)")
_EVENT_LEVELS = {"1": "critical", "2": "error", "3": "warning", "4": "info", "0": "info", "5": "debug"}


def event_records(lines: Iterator[str], malformed: Callable[[], None]) -> Iterator[Tuple[Record, int]]:
    """The events of an XML export, each with the number of lines it took. Entities beyond XML's own are not expanded."""
    held: List[str] = []
    size = used = 0
    for line in lines:
        used += 1
        while True:
            before, end, line = line.partition("</Event>")
            held.append(before)
            size += len(before) + 1
            if size > _LONGEST_EVENT:
                malformed()
                held, size = [], 0
            if not end:
                break
            text = "\n".join(held)
            held, size = [], 0
            start = re.search(r"<Event[\s>]", text)
            if start is None:
                malformed()
                continue
            yield _event(text[start.start() :]), used
            used = 0
    if any("<Event " in part or "<Event>" in part for part in held):
        malformed()


def _event(text: str) -> Record:
    provider, time = _PROVIDER.search(text), _TIME.search(text)
    fields: Dict[str, Any] = {}
    for n, (tag, attributes, value) in enumerate(_ELEMENT.findall(text)[:200]):
        name = tag
        if tag == "Data":
            given = _DATA_NAME.search(attributes)
            name = "EventData." + (given.group(1) if given else "Data%d" % n)
        fields[name] = html.unescape(value.strip())
    source = provider.group(1) if provider else str(fields.get("Channel", ""))
    message = str(fields.get("Message") or "%s event %s" % (source, fields.get("EventID", "")))
    level = _EVENT_LEVELS.get(str(fields.get("Level", "")), severity(fields.get("Level", "")))
    return Record("windows_event_xml", time.group(1) if time else "", str(fields.get("Computer", "")), source, level, message, fields)
