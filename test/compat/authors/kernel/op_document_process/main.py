"""Document.Process: plain text CV to structured JSON, stored in SQLite (db_write)."""
import hashlib, json, logging, os, re, sqlite3, sys, tempfile, time

NAME, VERSION, SCOPE = "Document.Process", "1.3.0", "document:process"
logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.INFO)


def log(event, trace, **kw):
    logging.info(json.dumps({"event": event, "correlation_id": (trace or {}).get("correlation_id"), **kw}))


def db():
    folder = os.path.join(tempfile.gettempdir(), "canapply-document-process")
    os.makedirs(folder, exist_ok=True)
    con = sqlite3.connect(os.path.join(folder, "store.db"), timeout=3)
    con.execute("create table if not exists idem (tenant text, operator text, key text, payload text, answer text, primary key (tenant, operator, key))")
    con.execute("create table if not exists docs (id integer primary key, tenant text, doc text, body text)")
    return con


def failed(code, message, **more):
    return {"status": "failed", "result": None, "artifacts": [], "metrics": {"latency_ms": 0}, "error": {"code": code, "message": message, **more},
            "nondeterminism": {"is_nondeterministic": False, "reasons": [], "stability": "high"}}


def parse(text):
    sections, current = {}, "head"
    for line in text.splitlines():
        m = re.match(r"^(education|experience|skills|publications)\s*:?\s*$", line.strip(), re.I)
        if m:
            current = m.group(1).lower()
        elif line.strip():
            sections.setdefault(current, []).append(line.strip(" -*"))
    return {"schema_version": "1.0", "sections": sections, "emails": re.findall(r"[\w.+-]+@[\w.-]+\.\w+", text), "words": len(text.split())}


def run(inp):
    t0 = time.time()
    p, key, auth = inp.get("payload"), inp.get("idempotency_key"), inp.get("auth_context") or {}
    if not isinstance(p, dict) or not isinstance(p.get("document_id"), str) or not isinstance(p.get("text"), str) or not p["text"].strip():
        return failed("VALIDATION_ERROR", "payload.document_id and payload.text are required")
    if not key:
        return failed("VALIDATION_ERROR", "idempotency_key is required")
    if SCOPE not in auth.get("scopes", []):
        return failed("POLICY_DENIED", f"scope {SCOPE} is missing")
    tenant = str(auth.get("tenant_id"))
    con = db()
    with con:
        row = con.execute("select answer from idem where tenant=? and operator=? and key=?", (tenant, NAME, key)).fetchone()
        if row:
            log("replay", inp.get("trace_context"), key=key)
            return json.loads(row[0])
        doc = parse(p["text"])
        con.execute("insert into docs (tenant, doc, body) values (?,?,?)", (tenant, p["document_id"], json.dumps(doc)))
        writes = con.execute("select count(*) from docs where tenant=? and doc=?", (tenant, p["document_id"])).fetchone()[0]
        answer = {"status": "succeeded", "result": {"document_id": p["document_id"], "processed": doc, "writes": writes}, "artifacts": [],
                  "metrics": {"latency_ms": int((time.time() - t0) * 1000), "tokens_in": 0, "tokens_out": 0, "cost_total": 0.0, "provider": "local"},
                  "error": None, "nondeterminism": {"is_nondeterministic": False, "reasons": [], "stability": "high"}}
        con.execute("insert into idem values (?,?,?,?,?)", (tenant, NAME, key, hashlib.sha256(json.dumps(p, sort_keys=True).encode()).hexdigest(), json.dumps(answer)))
    log("processed", inp.get("trace_context"), words=doc["words"])
    return answer


for line in sys.stdin:
    m = json.loads(line)
    if m["type"] == "handshake":
        print(json.dumps({"type": "handshake", "manifest": {"plugin_id": NAME, "plugin_version": VERSION, "protocol_version": "rterm.plugin.v1", "exposed_tools": [NAME], "capabilities": []}}), flush=True)
        continue
    print(json.dumps({"type": "response", "request_id": m["request_id"], "status": "ok", "output": run(m.get("input") or {}), "metadata": {}}), flush=True)
    break
