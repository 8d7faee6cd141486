import re
from datetime import datetime, timedelta, timezone


class IcsError(ValueError):
    pass


DUR = re.compile(r"^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$")


def unfold(text):
    return re.sub(r"\r?\n[ \t]", "", text).splitlines()


def unescape(v):
    return re.sub(r"\\([nN,;\\])", lambda m: "\n" if m.group(1) in "nN" else m.group(1), v)


def moment(value):
    value = value.strip()
    for fmt in ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            return datetime.strptime(value, fmt).replace(tzinfo=timezone.utc), fmt == "%Y%m%d"
        except ValueError:
            continue
    raise IcsError("bad date " + value)


def duration(value):
    m = DUR.match(value)
    if not m:
        raise IcsError("bad duration " + value)
    w, d, h, mi, s = (int(x or 0) for x in m.groups())
    return timedelta(weeks=w, days=d, hours=h, minutes=mi, seconds=s)


def read(text):
    lines = unfold(text.strip())
    if not lines or lines[0].upper() != "BEGIN:VCALENDAR":
        raise IcsError("no VCALENDAR")
    events, cur, depth = [], None, 0
    for line in lines:
        if ":" not in line:
            continue
        left, value = line.split(":", 1)
        prop = left.split(";")[0].upper()
        if prop == "BEGIN":
            if value.upper() == "VEVENT":
                cur = {}
            elif cur is not None:
                depth += 1
        elif prop == "END":
            if value.upper() == "VEVENT":
                events.append(cur)
                cur = None
            elif cur is not None:
                depth -= 1
        elif cur is not None and depth == 0:
            if prop in ("DTSTART", "DTEND"):
                cur[prop.lower()[2:]], cur["all_day"] = moment(value)
            elif prop == "DURATION":
                cur["duration"] = duration(value)
            elif prop in ("UID", "SUMMARY", "DESCRIPTION", "LOCATION", "STATUS", "LAST-MODIFIED", "RRULE"):
                cur[prop.lower().replace("-", "_")] = unescape(value)
    for e in events:
        if "end" not in e and "start" in e:
            e["end"] = e["start"] + (e.pop("duration", None) or timedelta(days=1 if e["all_day"] else 0))
    return events
