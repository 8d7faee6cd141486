"""TODO and FIXME comments of a repository."""
import json, os, re, sys
from collections import Counter
from pathlib import Path

RX = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?:\((\w+)\))?:?\s*(.*)")
SKIP = {".git", "node_modules", "__pycache__", "vendor"}


def scan(root: Path, exts):
    for folder, dirs, files in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d not in SKIP)
        for f in sorted(files):
            if exts and Path(f).suffix not in exts:
                continue
            p = Path(folder, f)
            try:
                for n, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1):
                    if m := RX.search(line):
                        yield {"file": str(p.relative_to(root)), "line": n, "tag": m[1], "owner": m[2], "text": m[3].strip()}
            except (UnicodeDecodeError, OSError) as exc:
                print(f"skipped {p}: {exc}", file=sys.stderr)


def handle(req):
    root = req.get("input", {}).get("path") or req.get("context", {}).get("repo_root")
    if not root:
        return {"status": "error", "error": {"code": "invalid_input", "message": "no path and no repo_root"}}
    root = Path(root)
    if not root.is_dir():
        return {"status": "error", "error": {"code": "not_a_directory", "message": str(root)}}
    found = list(scan(root, req["input"].get("extensions")))
    return {"status": "ok", "output": {"items": found[:500], "total": len(found), "by_tag": Counter(i["tag"] for i in found)}, "metadata": {"root": str(root)}}


stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
hello = json.loads(stdin.readline())
assert hello["type"] == "handshake"
stdout.write(json.dumps({"type": "handshake", "manifest": {"plugin_id": "devtools.todo", "plugin_version": "0.3.1", "protocol_version": "rterm.plugin.v1", "exposed_tools": ["todo.scan"], "capabilities": ["fs.read"]}}).encode() + b"\n")
stdout.flush()
req = json.loads(stdin.readline())
stdout.write(json.dumps({"type": "response", "request_id": req["request_id"], **handle(req)}).encode() + b"\n")
stdout.flush()
