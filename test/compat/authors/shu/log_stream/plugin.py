"""Walks an access log and reports while it goes: execute() hands back an async iterator."""
import asyncio
import re
from collections import Counter
from datetime import datetime

LINE = re.compile(r'^(?P<ip>\S+) \S+ \S+ \[(?P<at>[^\]]+)\] "(?P<verb>[A-Z]+) (?P<path>\S+) [^"]*" (?P<code>\d{3}) (?P<size>\d+|-)')


class Tally:
    def __init__(self):
        self.codes, self.paths, self.ips = Counter(), Counter(), Counter()
        self.bytes = self.lines = self.bad = 0
        self.first = self.last = None

    def add(self, line):
        self.lines += 1
        m = LINE.match(line)
        if not m:
            self.bad += 1
            return
        self.codes[m["code"][0] + "xx"] += 1
        self.paths[m["path"].split("?")[0]] += 1
        self.ips[m["ip"]] += 1
        self.bytes += 0 if m["size"] == "-" else int(m["size"])
        at = datetime.strptime(m["at"], "%d/%b/%Y:%H:%M:%S %z")
        self.first = min(self.first or at, at)
        self.last = max(self.last or at, at)

    def report(self):
        span = (self.last - self.first).total_seconds() if self.first else 0
        return {"lines": self.lines, "unparsed": self.bad, "codes": dict(self.codes), "bytes": self.bytes, "seconds": span,
                "top_paths": self.paths.most_common(5), "clients": len(self.ips)}


class Plugin:
    name = "log_stream"
    version = "0.1.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["analyse", "report"]},
            "log": {"type": "string"},
            "every": {"type": "integer", "minimum": 1}}, "required": ["op", "log"]}

    def get_output_schema(self):
        return None

    async def execute(self, params, context, host):
        lines = [l for l in params["log"].splitlines() if l.strip()]
        if not lines:
            return {"status": "error", "data": None, "error": {"code": "empty_log", "message": "nothing to read"}}
        if params["op"] == "report":
            t = Tally()
            for l in lines:
                t.add(l)
            return {"status": "success", "data": t.report(), "error": None}
        return self._events(lines, params.get("every") or 100)

    async def _events(self, lines, every):
        t = Tally()
        for n, line in enumerate(lines, 1):
            t.add(line)
            if n % every == 0:
                yield {"type": "progress", "done": n, "total": len(lines)}
                await asyncio.sleep(0)
        yield {"type": "content", "status": "success", "data": t.report()}
