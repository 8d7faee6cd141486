"""Markdown report, table comparison and schema inference for csv_profiler."""
from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

BARS = "▁▂▃▄▅▆▇█"
EMAIL = re.compile(r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$")
UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.I)


def sparkline(counts: Sequence[int]) -> str:
    top = max(counts) if counts else 0
    if not top:
        return ""
    return "".join(BARS[min(len(BARS) - 1, int(c / top * (len(BARS) - 1) + 0.5))] for c in counts)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> List[str]:
    def cell(v):
        return str(v).replace("|", "\\|").replace("\n", " ")

    out = ["| " + " | ".join(map(cell, head)) + " |", "|" + "---|" * len(head)]
    out.extend("| " + " | ".join(map(cell, r)) + " |" for r in rows)
    return out


def markdown(title: str, rows: int, columns: List[Dict[str, Any]], charts: Dict[str, Dict[str, Any]]) -> str:
    lines = ["# " + title, "", "%d rows, %d columns" % (rows, len(columns)), ""]
    lines += table(["Column", "Type", "Missing", "Distinct"], [[c["name"], c["type"], c["missing"], c["distinct"]] for c in columns])
    for name, chart in charts.items():
        lines += ["", "## " + name, "", "`%s` %s to %s" % (sparkline(chart["counts"]), chart["labels"][0], chart["labels"][-1])]
    warn = warnings(rows, columns)
    if warn:
        lines += ["", "## Warnings", ""] + ["- " + w for w in warn]
    return "\n".join(lines) + "\n"


def warnings(rows: int, columns: List[Dict[str, Any]]) -> List[str]:
    out = []
    for c in columns:
        if c["type"] == "empty":
            out.append("%s is empty" % c["name"])
        elif rows and c["missing"] / rows > 0.5:
            out.append("%s is missing in %d of %d rows" % (c["name"], c["missing"], rows))
        if c["distinct"] == 1 and rows > 1 and not c["missing"]:
            out.append("%s is constant" % c["name"])
    return out


class KeyProblem(Exception):
    pass


def by_key(head: List[str], rows: List[List[str]], key: str) -> Dict[str, Dict[str, str]]:
    if key not in head:
        raise KeyProblem("no key column %r" % key)
    at, out = head.index(key), {}
    for r in rows:
        k = r[at].strip()
        if k in out:
            raise KeyProblem("key %r occurs twice" % k)
        out[k] = {h: r[i].strip() for i, h in enumerate(head)}
    return out


def compare(old: Dict[str, Dict[str, str]], new: Dict[str, Dict[str, str]]) -> Dict[str, Any]:
    changed: List[Dict[str, Any]] = []
    for k in old:
        if k not in new:
            continue
        for col in [c for c in old[k] if c in new[k]]:
            if old[k][col] != new[k][col]:
                changed.append({"key": k, "column": col, "old": old[k][col], "new": new[k][col]})
    return {"added": [k for k in new if k not in old], "removed": [k for k in old if k not in new], "changed": changed}


def _string_schema(values: List[str]) -> Dict[str, Any]:
    if values and all(EMAIL.match(v) for v in values):
        return {"type": "string", "format": "email"}
    if values and all(UUID.match(v) for v in values):
        return {"type": "string", "format": "uuid"}
    distinct = sorted(set(values))
    if len(values) >= 4 and len(distinct) <= len(values) // 2 and len(distinct) <= 10:
        return {"type": "string", "enum": distinct}
    return {"type": "string", "maxLength": max((len(v) for v in values), default=0)}


def infer(columns: List[Dict[str, Any]], values: Dict[str, List[str]]) -> Dict[str, Any]:
    props: Dict[str, Any] = {}
    required: List[str] = []
    for c in columns:
        filled = [v for v in values[c["name"]] if v]
        if c["type"] in ("integer", "number"):
            s: Dict[str, Any] = {"type": c["type"], "minimum": c["min"], "maximum": c["max"]}
        elif c["type"] == "date":
            s = {"type": "string", "format": "date"}
        elif c["type"] == "empty":
            s = {"type": "null"}
        else:
            s = _string_schema(filled)
        props[c["name"]] = s
        if not c["missing"]:
            required.append(c["name"])
    return {"type": "object", "properties": props, "required": required}
