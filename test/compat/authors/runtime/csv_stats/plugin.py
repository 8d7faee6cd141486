#!/usr/bin/env python3
import csv
import io
import json
import math
import sys
import time

TOOLS = {}


def tool(fn):
    TOOLS["csv." + fn.__name__] = fn
    return fn


class Bad(Exception):
    pass


def rows(inp):
    text = inp.get("csv")
    if not isinstance(text, str) or not text.strip():
        raise Bad("csv: non-empty text required")
    try:
        dialect = csv.Sniffer().sniff(text.splitlines()[0], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    return list(csv.DictReader(io.StringIO(text), dialect=dialect))


@tool
def stats(inp):
    out, data = {}, rows(inp)
    if inp.get("delay_seconds"):
        time.sleep(float(inp["delay_seconds"]))       # for load tests
    for col in data[0] if data else []:
        nums = []
        for r in data:
            try:
                nums.append(float(r[col]))
            except (TypeError, ValueError):
                break
        else:
            mean = sum(nums) / len(nums)
            out[col] = {"type": "number", "min": min(nums), "max": max(nums), "mean": round(mean, 4), "sd": round(math.sqrt(sum((x - mean) ** 2 for x in nums) / len(nums)), 4)}
            continue
        vals = [r[col] for r in data]
        out[col] = {"type": "text", "distinct": len(set(vals)), "empty": sum(not v for v in vals)}
    return {"rows": len(data), "columns": out}


@tool
def head(inp):
    n = inp.get("n", 3)
    if not isinstance(n, int) or n < 1:
        raise Bad("n: positive integer")
    return {"rows": rows(inp)[:n]}


def main():
    rc = 0
    for line in sys.stdin:
        m = json.loads(line)
        if m["type"] == "handshake":
            r = {"type": "handshake", "manifest": {"plugin_id": "acme.csv", "plugin_version": "1.2.0", "protocol_version": m["protocol_version"], "exposed_tools": sorted(TOOLS), "capabilities": []}}
        else:
            r = {"type": "response", "request_id": m["request_id"]}
            try:
                r.update(status="ok", output=TOOLS[m["tool_name"]](m.get("input") or {}), metadata={"tool": m["tool_name"]})
            except Bad as exc:
                r.update(status="error", error={"code": "invalid_input", "message": str(exc)})
                rc = 2      # scripts like to see it
        print(json.dumps(r), flush=True)
        if m["type"] == "request":
            break
    return rc


sys.exit(main())
