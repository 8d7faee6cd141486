"""The log formats that are told apart, and what a line of each says.

A format is a function from a line to a [Record] or None. They are tried in the
order of FORMATS; one that was right is tried first for the next line, unless it
is so loose that it would take lines of stricter formats away from them.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

NO_FIELDS: Dict[str, Any] = {}


class Record(NamedTuple):
    """What a line says. Members that its format has no place for are empty."""

    format: str
    time: str
    host: str
    source: str
    severity: str
    message: str
    fields: Dict[str, Any]


DESCRIPTIONS = {
    "syslog_rfc5424": "syslog, RFC 5424",
    "syslog_rfc3164": "syslog, RFC 3164 (BSD)",
    "syslog_iso": "syslog with ISO 8601 times (rsyslog and journald exports)",
    "cef": "Common Event Format",
    "leef": "Log Event Extended Format",
    "json_lines": "one JSON object a line",
    "json_document": "one JSON document holding many records",
    "w3c_extended": "W3C extended log (IIS and others)",
    "access_combined": "web server access log, combined",
    "access_common": "web server access log, common",
    "apache_error": "Apache error log",
    "nginx_error": "nginx error log",
    "windows_event_xml": "Windows events as XML",
    "windows_event_csv": "Windows events as CSV",
    "csv": "delimited text with a header",
    "dpkg": "dpkg log",
    "audit": "Linux audit log",
    "application": "application log: time, level, message",
    "key_value": "key=value pairs",
    "timestamped_text": "text that starts with a time",
    "unknown": "no format that is known",
}

SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")
_LEVELS = {
    "emerg": "emergency", "panic": "emergency", "fatal": "critical", "crit": "critical", "severe": "critical", "err": "error",
    "warn": "warning", "information": "info", "informational": "info", "trace": "debug", "verbose": "debug",
}  # fmt: skip

_PAIR = re.compile(r'(?<![^\s,;|(])([A-Za-z_][\w.\-]{0,63})=("(?:[^"\\]|\\.)*"|\'[^\']*\'|[^\s,;|]*)')
_MONTH_TIME = r"[A-Z][a-z]{2} [ \d]?\d (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_ISO_TIME = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_RFC5424 = re.compile(r"<(\d{1,3})>\d{1,2} (\S+) (\S+) (\S+) (\S+) (\S+) (-|(?:\[(?:[^\]\\]|\\.)*\])+) ?(.*)")
_RFC3164 = re.compile(r"(?:<(\d{1,3})>)?(" + _MONTH_TIME + r")(?: [A-Z]{3,4})?:? (\S+) ([^\s:\[\]]{1,64})(?:\[([^\]]{0,32})\])?: ?(.*)")
_RFC3164_PLAIN = re.compile(r"(?:<(\d{1,3})>)?(" + _MONTH_TIME + r") (\S+) (.*)")
_ISO_SYSLOG = re.compile(r"(?:<(\d{1,3})>)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) (\S+) ([\w./@-]{1,64})(?:\[([^\]]{0,32})\])?: ?(.*)")
_HEADER = re.compile(r"(?:<\d{1,3}>)?(?:\d )?(" + _MONTH_TIME + "|" + _ISO_TIME + r") (\S+) ")
_ACCESS = re.compile(
    r'(?:\S+:\d+ )?(\S+) \S+ (\S+) \[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?'
)
_APACHE_ERROR = re.compile(r"\[([A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d(?:\.\d+)? \d{4})\] \[([^\]]*)\] (.*)")
_NGINX_ERROR = re.compile(r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(\w+)\] (\d+)#\d+: (.*)")
_DPKG = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (startup|status|install|upgrade|configure|trigproc|remove|purge|conffile) (.*)")
_AUDIT = re.compile(r"(?:node=(\S+) )?type=([A-Z_0-9\[\]]+) msg=audit\((\d+\.\d+):(\d+)\): ?(.*)")
_APPLICATION = re.compile(
    r"\[?(" + _ISO_TIME + r")\]?[ |,:-]+(?:\[?[\w.#/-]{1,80}\]?[ |:-]+){0,3}?\[?"
    r"(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE|trace|debug|info|notice|warn|warning|error|fatal|critical)\b\]?[ |:-]*(.*)"
)
_TIMESTAMPED = re.compile(r"\[?(" + _ISO_TIME + "|" + _MONTH_TIME + r"|\d{10}(?:\.\d{1,9})?(?=\s)|\d{1,2}/\d{1,2}/\d{4},? \d{1,2}:\d\d:\d\d(?: ?[AP]M)?)\]?[ ,|:\t-]*(.*)")
_SD_PARAMETER = re.compile(r'([\w.@-]{1,64})="((?:[^"\\\]]|\\.)*)"')
_CEF_SPLIT = re.compile(r"(?<!\\)\|")
_CEF_NEXT = re.compile(r"\s+(?=[\w.\[\]-]{1,64}=)")

TIME_NAMES = (
    "@timestamp", "timestamp", "time", "ts", "datetime", "date_time", "eventtime", "event_time", "timegenerated", "timecreated", "date and time",
    "creationtime", "createddatetime", "activitydatetime", "published", "start_time", "starttime", "event.created", "system.timecreated", "_time", "date",
    "__realtime_timestamp", "logged", "time_iso8601", "rt", "devtime", "end", "start",
)  # fmt: skip
HOST_NAMES = (
    "host", "hostname", "host.name", "host_name", "computer", "computername", "machinename", "node", "server", "device", "_hostname", "dvchost", "dvc", "devname",
    "agent.hostname", "recipientaccountid", "resource.labels.instance_id", "s-computername", "s-ip", "identhostname", "workload",
)  # fmt: skip
SOURCE_NAMES = (
    "eventsource", "source", "providername", "provider", "program", "app", "application", "service", "service.name", "logger", "logger_name", "process",
    "process.name", "component", "syslog_identifier", "event.module", "logname", "operationname", "product", "sourcetype", "category", "s-sitename",
    "protopayload.servicename", "event_type",
)  # fmt: skip
SEVERITY_NAMES = ("severity", "level", "log.level", "loglevel", "log_level", "leveldisplayname", "levelname", "priority", "sev")
MESSAGE_NAMES = ("message", "msg", "eventname", "event", "description", "text", "log", "action", "operation", "name", "cs-uri-stem")


def severity(text: Any) -> str:
    """A severity by its common name; what is none of them is empty."""
    name = str(text).strip().lower()
    if name.isdigit() and len(name) == 1 and int(name) < 8:
        return SEVERITIES[int(name)]
    name = _LEVELS.get(name, name)
    return name if name in SEVERITIES else ""


def pairs(text: str) -> Dict[str, Any]:
    """The key=value pairs in text, quotes removed."""
    if "=" not in text:
        return NO_FIELDS
    found: Dict[str, Any] = {}
    for key, value in _PAIR.findall(text):
        found[key] = value[1:-1] if value[:1] in "\"'" and len(value) > 1 else value
    return found


def _of_priority(priority: Optional[str]) -> str:
    return SEVERITIES[int(priority) & 7] if priority else ""


def _dash(text: str) -> str:
    return "" if text == "-" else text


def cef(line: str) -> Optional[Record]:
    """CEF:0|vendor|product|version|id|name|severity|extension, perhaps after a syslog header."""
    at = line.find("CEF:")
    if at < 0:
        return None
    parts = _CEF_SPLIT.split(line[at:], 7)
    if len(parts) < 7:
        return None
    fields: Dict[str, Any] = {"cef.signature_id": parts[4], "cef.name": parts[5], "cef.severity": parts[6]}
    if len(parts) == 8:
        for part in _CEF_NEXT.split(parts[7].strip()):
            key, equals, value = part.partition("=")
            if equals and len(key) <= 64:
                fields[key] = value
    header = _HEADER.match(line)
    time = str(fields.get("rt") or fields.get("end") or fields.get("start") or (header.group(1) if header else ""))
    host = str(fields.get("dvchost") or fields.get("dvc") or (header.group(2) if header else ""))
    level = parts[6].strip()
    if level.isdigit():
        number = int(level)
        level = "info" if number <= 3 else "warning" if number <= 6 else "error" if number <= 8 else "critical"
    else:
        level = {"low": "info", "medium": "warning", "high": "error", "very-high": "critical"}.get(level.lower(), "")
    return Record("cef", time, host, parts[1] + " " + parts[2], level, parts[5], fields)


def leef(line: str) -> Optional[Record]:
    """LEEF:1.0|vendor|product|version|event id|attributes, LEEF 2.0 with a delimiter before the attributes."""
    at = line.find("LEEF:")
    if at < 0:
        return None
    parts = line[at:].split("|", 5)
    if len(parts) < 6:
        return None
    attributes, delimiter = parts[5], "\t"
    if parts[0].startswith("LEEF:2"):
        named, bar, rest = attributes.partition("|")
        if bar and len(named) <= 6 and "=" not in named:
            attributes = rest
            code = re.fullmatch(r"(?:0?x|\\x)([0-9A-Fa-f]{2,4})", named)
            delimiter = chr(int(code.group(1), 16)) if code else named or "\t"
    fields: Dict[str, Any] = {"leef.event_id": parts[4]}
    for part in attributes.split(delimiter):
        key, equals, value = part.partition("=")
        if equals and 0 < len(key.strip()) <= 64:
            fields[key.strip()] = value
    header = _HEADER.match(line)
    time = str(fields.get("devTime") or (header.group(1) if header else ""))
    host = str(fields.get("identHostName") or (header.group(2) if header else ""))
    return Record("leef", time, host, parts[1] + " " + parts[2], severity(fields.get("sev", "")), parts[4], fields)


def syslog_rfc5424(line: str) -> Optional[Record]:
    """<PRI>1 TIME HOST APP PROCID MSGID [SD] MESSAGE."""
    if line[:1] != "<":
        return None
    found = _RFC5424.match(line)
    if not found:
        return None
    priority, time, host, app, _, msgid, data, message = found.groups()
    fields = dict(_SD_PARAMETER.findall(data)) if data != "-" else {}
    fields.update(pairs(message))
    if msgid != "-":
        fields["msgid"] = msgid
    return Record("syslog_rfc5424", _dash(time), _dash(host), _dash(app), _of_priority(priority), message.lstrip("\ufeff"), fields)


def syslog_rfc3164(line: str) -> Optional[Record]:
    """[<PRI>]Mmm dd hh:mm:ss HOST TAG[PID]: MESSAGE, the tag missing in some."""
    found = _RFC3164.match(line)
    if found:
        priority, time, host, tag, _, message = found.groups()
        return Record("syslog_rfc3164", time, host, tag, _of_priority(priority), message, pairs(message))
    found = _RFC3164_PLAIN.match(line)
    if found:
        priority, time, host, message = found.groups()
        return Record("syslog_rfc3164", time, host, "", _of_priority(priority), message, pairs(message))
    return None


def syslog_iso(line: str) -> Optional[Record]:
    """ISO-TIME HOST TAG[PID]: MESSAGE."""
    found = _ISO_SYSLOG.match(line)
    if not found or severity(found.group(4)):
        return None
    priority, time, host, tag, _, message = found.groups()
    return Record("syslog_iso", time, host, tag, _of_priority(priority), message, pairs(message))


def json_lines(line: str) -> Optional[Record]:
    """One JSON object."""
    if line.lstrip()[:1] != "{":
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return of_object(value, "json_lines") if isinstance(value, dict) else None


def access(line: str) -> Optional[Record]:
    """HOST IDENT USER [TIME] "REQUEST" STATUS BYTES, combined with "REFERRER" "AGENT"."""
    found = _ACCESS.match(line)
    if not found:
        return None
    client, user, time, request, status, size, referrer, agent = found.groups()
    method, _, rest = request.partition(" ")
    fields: Dict[str, Any] = {"client": client, "method": method, "path": rest.rsplit(" ", 1)[0].partition("?")[0], "status": status, "bytes": size}
    if user != "-":
        fields["user"] = user
    if agent is None:
        return Record("access_common", time, "", "", "", request, fields)
    fields["referrer"], fields["user_agent"] = referrer, agent
    return Record("access_combined", time, "", "", "", request, fields)


def apache_error(line: str) -> Optional[Record]:
    """[Www Mmm dd hh:mm:ss yyyy] [module:level] message."""
    found = _APACHE_ERROR.match(line)
    if not found:
        return None
    module, _, level = found.group(2).rpartition(":")
    return Record("apache_error", found.group(1), "", module, severity(level), found.group(3), NO_FIELDS)


def nginx_error(line: str) -> Optional[Record]:
    """yyyy/mm/dd hh:mm:ss [level] pid#tid: message."""
    found = _NGINX_ERROR.match(line)
    return Record("nginx_error", found.group(1), "", "nginx", severity(found.group(2)), found.group(4), NO_FIELDS) if found else None


def dpkg(line: str) -> Optional[Record]:
    """yyyy-mm-dd hh:mm:ss action package..."""
    found = _DPKG.match(line)
    if not found:
        return None
    words = found.group(3).split(" ")
    fields: Dict[str, Any] = {"action": found.group(2)}
    if found.group(2) == "status" and len(words) >= 3:
        fields.update(state=words[0], package=words[1], version=words[2])
    elif found.group(2) != "startup":
        fields["package"] = words[0]
    return Record("dpkg", found.group(1), "", "dpkg", "", found.group(2) + " " + found.group(3), fields)


def audit(line: str) -> Optional[Record]:
    """type=X msg=audit(seconds:serial): key=value..."""
    found = _AUDIT.match(line)
    if not found:
        return None
    node, kind, time, _, rest = found.groups()
    fields = dict(pairs(rest))
    fields["type"] = kind
    return Record("audit", time, node or "", "audit", "", kind + " " + rest, fields)


def application(line: str) -> Optional[Record]:
    """TIME ... LEVEL ... message, as logging libraries write it."""
    found = _APPLICATION.match(line)
    return Record("application", found.group(1), "", "", severity(found.group(2)), found.group(3), pairs(found.group(3))) if found else None


def key_value(line: str) -> Optional[Record]:
    """Lines that are key=value pairs in the main."""
    if line.count("=") < 3:
        return None
    found = pairs(line)
    if len(found) < 3 or 2 * sum(len(k) + len(v) + 1 for k, v in found.items()) < len(line):
        return None
    record = of_object(found, "key_value")
    if "date" in found and "time" in found:
        record = record._replace(time="%s %s" % (found["date"], found["time"]))
    return record._replace(message=line) if record.message == "" else record


def timestamped_text(line: str) -> Optional[Record]:
    """A time, then anything."""
    found = _TIMESTAMPED.match(line)
    return Record("timestamped_text", found.group(1), "", "", "", found.group(2), pairs(found.group(2))) if found else None


Format = Callable[[str], Optional[Record]]
STRICT: Tuple[Format, ...] = (cef, leef, json_lines, syslog_rfc5424, access, apache_error, nginx_error, dpkg, audit, syslog_iso)
FORMATS: Tuple[Format, ...] = STRICT + (application, syslog_rfc3164, key_value, timestamped_text)


class Lines:
    """Finds each line's format."""

    def __init__(self) -> None:
        self._hot: Optional[Format] = None

    def read(self, line: str) -> Optional[Record]:
        """What the line says, or None if no format fits."""
        hot = self._hot
        if hot is not None and ("CEF:" not in line and "LEEF:" not in line or hot in (cef, leef)):
            record = hot(line)
            if record is not None:
                return record
        for format in FORMATS:
            if format is hot:
                continue
            record = format(line)
            if record is not None:
                self._hot = format if format in STRICT or format is syslog_rfc3164 else None
                return record
        return None


def flatten(value: Dict[str, Any], limit: int = 200) -> Dict[str, Any]:
    """An object's members with dotted names, to four levels and at most limit of them; of a list, its first three items."""
    flat: Dict[str, Any] = {}
    pending: List[Tuple[str, Any, int]] = [("", value, 0)]
    while pending and len(flat) < limit:
        name, item, depth = pending.pop()
        if isinstance(item, dict) and depth < 4:
            inner = [(name + "." + str(k) if name else str(k), v, depth + 1) for k, v in list(item.items())[:limit]]
            pending += reversed(inner)
        elif isinstance(item, list) and item and depth < 4:
            pending += [(name + "[]", v, depth + 1) for v in reversed(item[:3])]
        elif name:
            flat[name[:200]] = item
    return flat


def of_object(value: Dict[str, Any], format: str) -> Record:
    """The record that an object of named values is."""
    fields = flatten(value)
    lower = {name.lower(): name for name in fields}

    def named(names: Tuple[str, ...]) -> str:
        for name in names:
            item = fields.get(lower.get(name, ""))
            if item not in (None, "", "-"):
                return str(item)
        return ""

    return Record(format, named(TIME_NAMES), named(HOST_NAMES), named(SOURCE_NAMES), severity(named(SEVERITY_NAMES)), named(MESSAGE_NAMES), fields)
