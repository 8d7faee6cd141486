import json, sys, pathlib
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import draft

MANIFEST = json.loads(pathlib.Path(__file__).with_name("manifest.json").read_text())

def answer(inp):
    ctx = inp.get("context", {})
    head = {"agent_name": MANIFEST["name"], "agent_version": MANIFEST["version"]}
    lacking = [f for f in MANIFEST["requires"]["context_fields"] if f.split(".")[0] not in ctx or f.split(".")[1] not in ctx[f.split(".")[0]]]
    if lacking:
        raise LookupError(", ".join(lacking))
    d = draft.build(ctx["student"]["profile"], ctx["professor"]["entity"], inp.get("constraints") or {})
    limit = (inp.get("runtime") or {}).get("max_words")
    out = {**head, "kind": "step_output", "confidence": 0.9 if "shared_topics:0" not in d.signals else 0.5,
           "rationale": {"short": "Draft from profile and topics.", "signals": d.signals},
           "step_output": {"schema_version": "1.0", "subject": d.subject, "body": d.body, "words": d.words}}
    if limit and d.words > limit:
        out["suggestions"] = [{"type": "shorten", "text": f"{d.words} words, limit {limit}"}]
    return out

def handle(m):
    if m.get("type") == "handshake":
        return {"type": "handshake", "manifest": {"plugin_id": MANIFEST["name"], "plugin_version": MANIFEST["version"], "protocol_version": "rterm.plugin.v1", "exposed_tools": [MANIFEST["name"]], "capabilities": []}}
    r = {"type": "response", "request_id": m["request_id"]}
    try:
        return {**r, "status": "ok", "output": answer(m["input"])}
    except LookupError as e:    # here NEEDS_CONTEXT travels as the protocol's own error
        return {**r, "status": "error", "error": {"code": "NEEDS_CONTEXT", "message": "missing: " + e.args[0]}}

while True:
    raw = sys.stdin.readline()
    if not raw:
        break
    sys.stdout.write(json.dumps(handle(json.loads(raw)), ensure_ascii=False) + "\n")
    sys.stdout.flush()
