import asyncio
import difflib
import json
import sys

ID, VER = "texttools.diff", "2.0.0"


def diff(inp):
    a, b = inp.get("a"), inp.get("b")
    if not (isinstance(a, str) and isinstance(b, str)):
        raise TypeError("a and b must be strings")
    mode = inp.get("mode", "unified")
    al, bl = a.splitlines(), b.splitlines()
    if mode == "unified":
        text = "\n".join(difflib.unified_diff(al, bl, "a", "b", lineterm="", n=int(inp.get("context_lines", 3))))
    elif mode == "words":
        sm = difflib.SequenceMatcher(None, a.split(), b.split(), autojunk=False)
        text = " ".join(" ".join(a.split()[i1:i2]) if op == "equal" else "[-" + " ".join(a.split()[i1:i2]) + "-]{+" + " ".join(b.split()[j1:j2]) + "+}" for op, i1, i2, j1, j2 in sm.get_opcodes())
    else:
        raise ValueError(f"unknown mode {mode}")
    added = sum(1 for l in difflib.ndiff(al, bl) if l.startswith("+ "))
    removed = sum(1 for l in difflib.ndiff(al, bl) if l.startswith("- "))
    return {"diff": text, "added": added, "removed": removed, "equal": a == b}


async def main():
    reader = asyncio.StreamReader(limit=4 * 1024 * 1024)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def out(o):
        sys.stdout.buffer.write(json.dumps(o, ensure_ascii=False).encode("utf-8") + b"\n")   # real UTF-8
        sys.stdout.buffer.flush()

    while raw := await reader.readline():
        m = json.loads(raw)
        if m["type"] == "handshake":
            out({"type": "handshake", "manifest": {"plugin_id": ID, "plugin_version": VER, "protocol_version": m["protocol_version"], "exposed_tools": ["text.diff"], "capabilities": []}})
            continue
        try:
            res = {"status": "ok", "output": diff(m["input"])}
        except (TypeError, ValueError) as exc:
            res = {"status": "error", "error": {"code": "invalid_input", "message": str(exc), "details": {"type": type(exc).__name__}}}
        out({"type": "response", "request_id": m["request_id"], **res})

asyncio.run(main())
