"""Puts small tables into an in-memory SQLite and answers one SELECT."""
import asyncio
import contextlib
import csv
import io
import re
import sqlite3
from typing import Any, Dict, List

try:
    import numpy                      # optional, only for quantiles
except ImportError:
    numpy = None

SAFE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, getattr(sqlite3, "SQLITE_RECURSIVE", 33)}


class QueryProblem(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def ident(name):
    clean = re.sub(r"\W+", "_", name.strip()).strip("_").lower() or "col"
    if clean[0].isdigit():
        clean = "c_" + clean
    if not SAFE.match(clean):
        raise QueryProblem("bad_identifier", name)
    return clean


def cell(v):
    if v == "":
        return None
    for cast in (int, float):
        try:
            return cast(v)
        except ValueError:
            continue
    return v


def guard(action, *_):
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def load(con, name, text):
    rows = [r for r in csv.reader(io.StringIO(text)) if r]
    if not rows:
        raise QueryProblem("empty_table", name)
    cols = [ident(c) for c in rows[0]]
    con.execute("create table %s (%s)" % (ident(name), ", ".join('"%s"' % c for c in cols)))
    con.executemany("insert into %s values (%s)" % (ident(name), ",".join("?" * len(cols))), [[cell(v) for v in r[:len(cols)]] + [None] * (len(cols) - len(r)) for r in rows[1:]])


def answer(tables: Dict[str, str], sql: str, args: List[Any], limit: int):
    with contextlib.closing(sqlite3.connect(":memory:")) as con:
        for name, text in tables.items():
            load(con, name, text)
        con.set_authorizer(guard)
        budget = [200]

        def tick():
            budget[0] -= 1
            return 1 if budget[0] <= 0 else 0

        con.set_progress_handler(tick, 10000)
        try:
            cur = con.execute(sql, args)
            rows = cur.fetchmany(limit + 1)
        except sqlite3.DatabaseError as exc:
            text = str(exc)
            raise QueryProblem("query_refused" if "prohibited" in text or "not authorized" in text else "query_too_long" if "interrupted" in text else "bad_query", text)
        except sqlite3.Warning as exc:
            raise QueryProblem("bad_query", str(exc))
        cols = [d[0] for d in cur.description or []]
        return cols, [list(r) for r in rows[:limit]], len(rows) > limit


class Plugin:
    name = "sql_report"
    version = "0.1.2"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["query", "chart"]},
            "tables": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}, "x-ui": {"help": "Name to CSV text"}},
            "sql": {"type": "string", "minLength": 1}, "args": {"type": "array"},
            "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000, "x-ui": {"placeholder": "100"}}},
            "required": ["op", "tables", "sql"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"columns": {"type": "array", "items": {"type": "string"}}, "rows": {"type": "array", "items": {"type": "array"}},
                "truncated": {"type": "boolean"}, "chart": {"type": "object"}}}

    async def execute(self, params, context, host):
        try:
            cols, rows, more = await asyncio.to_thread(answer, params["tables"], params["sql"], params.get("args") or [], params.get("limit") or 100)
            if params["op"] == "chart":
                data = {"chart": self._chart(cols, rows)}
            else:
                data = {"columns": cols, "rows": rows, "truncated": more}
        except QueryProblem as exc:
            return {"status": "error", "data": None, "error": {"code": exc.code, "message": str(exc)}}
        return {"status": "success", "data": data, "error": None,
                "diagnostics": [] if numpy else ["numpy is absent: no quantiles"]}

    @staticmethod
    def _chart(cols, rows):
        if len(cols) < 2:
            raise QueryProblem("not_chartable", "a label column and a value column are needed")
        series = []
        for i, c in enumerate(cols[1:], 1):
            vals = [r[i] for r in rows]
            if not all(v is None or isinstance(v, (int, float)) for v in vals):
                raise QueryProblem("not_chartable", "column %s is not numeric" % c)
            series.append({"name": c, "values": vals})
        return {"labels": [str(r[0]) for r in rows], "series": series}
