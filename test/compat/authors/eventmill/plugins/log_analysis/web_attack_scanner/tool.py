import asyncio, re, os, json
from urllib.parse import unquote_plus
from framework.plugins.protocol import ToolResult, ValidationResult

COMBINED = re.compile(r'(\S+) \S+ (\S+) \[([^\]]+)\] "(\S+) (\S+)[^"]*" (\d{3}) (\S+)(?: "([^"]*)" "([^"]*)")?')
SIGS = {"sqli": re.compile(r"(?i)union\s+(all\s+)?select|or\s+1=1|sleep\(\d+\)|information_schema"),
        "xss": re.compile(r"(?i)<script|onerror\s*=|javascript:"),
        "traversal": re.compile(r"\.\./|/etc/passwd"),
        "rce": re.compile(r"(?i)\$\{jndi:|;\s*(wget|curl)\s|\bcmd="),
        "scanner": re.compile(r"(?i)sqlmap|nikto|nuclei|dirbuster")}


class WebAttackScanner:
    """The work is a coroutine (the same code serves a web page); execute() drives it with its own loop."""

    def metadata(self):
        return {"tool_name": "web_attack_scanner", "version": "1.1.0", "signatures": list(SIGS)}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True) if payload.get("file_path") else ValidationResult(ok=False, errors=["file_path is required"])

    def execute(self, payload, context):
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(self._scan(payload))
        finally:
            loop.close()

    async def _scan(self, payload):
        path = payload["file_path"]
        if not os.path.isfile(path):
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=os.path.basename(path))
        q = asyncio.Queue(maxsize=500)
        hits, seen = [], {"lines": 0, "parsed": 0}

        async def feed():
            with open(path, errors="replace") as fh:
                for line in fh:
                    await q.put(line)
            await q.put(None)

        async def work():
            while (line := await q.get()) is not None:
                seen["lines"] += 1
                m = COMBINED.match(line)
                if not m:
                    continue
                seen["parsed"] += 1
                target = unquote_plus(unquote_plus(m[5]))
                kinds = [k for k, rx in SIGS.items() if rx.search(m[9] or "" if k == "scanner" else target)]
                if kinds:
                    hits.append({"ip": m[1], "kinds": kinds, "path": target[:200], "status": int(m[6]), "succeeded": m[6].startswith("2")})

        await asyncio.gather(feed(), work())
        if seen["lines"] and not seen["parsed"]:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="not a common or combined access log")
        by = {}
        for h in hits:
            for k in h["kinds"]:
                by[k] = by.get(k, 0) + 1
        return ToolResult(ok=True, result={**seen, "hits": hits, "by_kind": by, "sources": sorted({h["ip"] for h in hits})})

    def summarize_for_llm(self, result):
        r = result.result
        if not r["hits"]:
            return f"{r['parsed']} requests, no attack signatures."
        return f"{len(r['hits'])} suspicious of {r['parsed']} requests ({json.dumps(r['by_kind'])}) from {len(r['sources'])} sources; {sum(h['succeeded'] for h in r['hits'])} answered 2xx."
