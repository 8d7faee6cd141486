"""Rows of cells into records, records into a pivot."""
import csv
import io
import re
from collections import OrderedDict
from typing import Dict, List, Sequence

A1 = re.compile(r"^([A-Z]{1,3})([1-9]\d*)(?::([A-Z]{1,3})([1-9]\d*))?$")


class TableError(Exception):
    code = "bad_table"


class BadRange(TableError):
    code = "bad_range"


class NoColumn(TableError):
    code = "unknown_column"


def check_range(a1: str) -> str:
    sheet, _, cells = a1.rpartition("!")
    if not A1.match(cells):
        raise BadRange("not an A1 range: " + a1)
    return a1


def records(values: Sequence[Sequence[str]]) -> List[Dict[str, str]]:
    if not values:
        raise TableError("the range is empty")
    head, seen = [], {}
    for h in values[0]:
        h = (str(h) or "column").strip()
        seen[h] = seen.get(h, 0) + 1
        head.append(h if seen[h] == 1 else "%s_%d" % (h, seen[h]))
    out = []
    for row in values[1:]:
        row = list(row) + [""] * (len(head) - len(row))     # the API trims empty cells at the end
        out.append(dict(zip(head, row)))
    return out


def number(text) -> float:
    s = str(text).strip().replace("\u00a0", "").replace(" ", "")
    if re.match(r"^-?\d{1,3}(\.\d{3})*,\d+$", s):
        s = s.replace(".", "").replace(",", ".")
    else:
        s = s.replace(",", "")
    return float(s.rstrip("%")) / (100.0 if s.endswith("%") else 1.0) if s else 0.0


def pivot(rows, by, value, how="sum"):
    groups: "OrderedDict[str, List[float]]" = OrderedDict()
    for need in (by, value):
        if rows and need not in rows[0]:
            raise NoColumn("no column " + need)
    bad = 0
    for r in rows:
        try:
            groups.setdefault(r[by], []).append(number(r[value]))
        except ValueError:
            bad += 1
    agg = {"sum": sum, "max": max, "count": len, "mean": lambda v: sum(v) / len(v)}[how]
    return OrderedDict((k, round(agg(v), 4)) for k, v in groups.items()), bad


def to_csv(rows) -> str:
    buf = io.StringIO()
    w = csv.DictWriter(buf, fieldnames=list(rows[0]), lineterminator="\n")
    w.writeheader()
    w.writerows(rows)
    return buf.getvalue()
