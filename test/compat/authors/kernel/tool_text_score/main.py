"""Text.Score: rubric for outreach emails. Pure."""
import json, re, sys, time

RUBRIC = {
    "length": (25, lambda t: 60 <= len(t.split()) <= 220),
    "greeting": (15, lambda t: bool(re.match(r"\s*(dear|hello|hi)\b", t, re.I))),
    "closing": (15, lambda t: bool(re.search(r"(sincerely|regards|wishes),?\s", t + " ", re.I))),
    "no_shouting": (15, lambda t: not re.search(r"\b[A-Z]{5,}\b|!!", t)),
    "question": (10, lambda t: "?" in t),
    "no_placeholder": (20, lambda t: not re.search(r"\{\{|\[name\]|XXX|TODO", t)),
}

def score(p):
    if not isinstance(p, dict) or not isinstance(p.get("text"), str) or not p["text"].strip():
        return None, {"code": "VALIDATION_ERROR", "message": "payload.text must be a non-empty string"}
    parts = {k: (w if f(p["text"]) else 0) for k, (w, f) in RUBRIC.items()}
    total = sum(parts.values())
    return {"score": total, "parts": parts, "grade": "A" if total >= 85 else "B" if total >= 65 else "C", "words": len(p["text"].split())}, None

for line in sys.stdin:
    m, t = json.loads(line), time.perf_counter()
    if m["type"] == "handshake":
        out = {"type": "handshake", "manifest": {"plugin_id": "Text.Score", "plugin_version": "1.0.0", "protocol_version": "rterm.plugin.v1", "exposed_tools": ["Text.Score"], "capabilities": []}}
    else:
        res, err = score(m["input"].get("payload"))
        out = {"type": "response", "request_id": m["request_id"], "status": "ok", "output": {"result": res, "metrics": {"latency_ms": round((time.perf_counter() - t) * 1000, 3)}, "error": err}}
    sys.stdout.write(json.dumps(out) + "\n"); sys.stdout.flush()
