import asyncio, hashlib, json, os, re, sys, tempfile, time, urllib.request, urllib.error

NAME, VERSION = "Professor.Summarize", "1.0.5"


def record(inp):
    """Path of the idempotency record (tenant, operator, key)."""
    ident = json.dumps([inp["auth_context"].get("tenant_id"), NAME, inp.get("idempotency_key")])
    d = os.path.join(tempfile.gettempdir(), "prof-summarize")
    os.makedirs(d, exist_ok=True)
    return os.path.join(d, hashlib.sha256(ident.encode()).hexdigest() + ".json")


def page(url):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "application/json", "User-Agent": "canapply/1"}), timeout=2) as r:
        return json.loads(r.read())


def summarize(doc):
    sents = re.split(r"(?<=[.!?])\s+", doc.get("bio", ""))
    return {"schema_version": "1.0", "name": doc.get("name"), "summary": " ".join(sents[:2]).strip(), "topics": sorted({t.lower() for t in doc.get("topics", [])})[:8], "paper_count": len(doc.get("papers", []))}


async def handle(inp):
    t0 = time.monotonic()
    def done(status, result=None, error=None):
        return {"status": status, "result": result, "artifacts": [], "metrics": {"latency_ms": round((time.monotonic() - t0) * 1000), "provider": "canspider"}, "error": error,
                "nondeterminism": {"is_nondeterministic": True, "reasons": ["web_content"], "stability": "medium"}}
    p, auth = inp.get("payload") or {}, inp.get("auth_context") or {}
    if not isinstance(p.get("professor_id"), int) or not str(p.get("base_url", "")).startswith("http"):
        return done("failed", error={"code": "VALIDATION_ERROR", "message": "professor_id (integer) and base_url are required"})
    if not {"professor:read", "professor:*"} & set(auth.get("scopes", [])):
        return done("failed", error={"code": "POLICY_DENIED", "message": "professor:read"})
    rec = record(inp)
    if os.path.exists(rec):
        with open(rec) as fh:
            return json.load(fh)
    try:
        doc = await asyncio.get_running_loop().run_in_executor(None, page, f"{p['base_url'].rstrip('/')}/professors/{p['professor_id']}")
    except urllib.error.HTTPError as e:
        return done("failed", error={"code": "NOT_FOUND" if e.code == 404 else "UPSTREAM_ERROR", "message": f"HTTP {e.code}"})
    except (OSError, ValueError) as e:
        return done("failed", error={"code": "UPSTREAM_ERROR", "message": type(e).__name__})
    out = done("succeeded", summarize(doc))
    with open(rec + ".new", "w") as fh:
        json.dump(out, fh)
    os.replace(rec + ".new", rec)
    return out


async def main():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        m = json.loads(line)
        if m["type"] == "handshake":
            print(json.dumps({"type": "handshake", "manifest": {"plugin_id": NAME, "plugin_version": VERSION, "protocol_version": m["protocol_version"], "exposed_tools": [NAME], "capabilities": []}}), flush=True)
        else:
            print(json.dumps({"type": "response", "request_id": m["request_id"], "status": "ok", "output": await handle(m["input"])}), flush=True)
            return

asyncio.run(main())
