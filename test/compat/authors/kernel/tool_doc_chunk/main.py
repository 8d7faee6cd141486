import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chunker import chunk  # noqa: E402

ME = ("Doc.Chunk", "1.2.0")


def tool(env):
    start = time.time()
    p = env.get("payload")
    error, result = None, None
    try:
        text, size, overlap = p["text"], p.get("size", 100), p.get("overlap", 10)
        if not isinstance(text, str) or not (isinstance(size, int) and size > 0) or not (isinstance(overlap, int) and 0 <= overlap < size):
            raise ValueError("text, size > 0 and 0 <= overlap < size are needed")
        chunks = [c.as_dict() for c in chunk(text, size, overlap)]
        result = {"chunks": chunks, "count": len(chunks)}
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        error = {"code": "VALIDATION_ERROR", "message": str(exc), "retryable": False}
    return {"result": result, "metrics": {"latency_ms": int((time.time() - start) * 1000)}, "error": error}


def reply(obj):
    sys.stdout.write(json.dumps(obj, separators=(",", ":")) + "\n")
    sys.stdout.flush()


hello = json.loads(sys.stdin.readline())
reply({"type": "handshake", "manifest": {"plugin_id": ME[0], "plugin_version": ME[1], "protocol_version": hello["protocol_version"], "exposed_tools": [ME[0]], "capabilities": []}})
req = sys.stdin.readline()
if req:
    req = json.loads(req)
    reply({"type": "response", "request_id": req["request_id"], "status": "ok", "output": tool(req["input"]), "metadata": {"trace": req["input"].get("trace_context")}})
