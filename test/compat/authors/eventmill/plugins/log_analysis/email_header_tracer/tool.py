from email import policy
from email.parser import BytesParser
from email.utils import parsedate_to_datetime, parseaddr
import re, os
from types import SimpleNamespace
from framework.plugins.protocol import ToolResult, ValidationResult

class EmailHeaderTracer:
    """Reconstructs the path of a mail and checks authentication results."""
    def metadata(self): return {"tool_name": "email_header_tracer", "version": "1.0.0"}
    def validate_inputs(self, payload):
        if payload.get("raw") or payload.get("file_path"): return ValidationResult(ok=True)
        return ValidationResult(ok=False, errors=["raw or file_path is needed"])
    def execute(self, payload, context):
        if payload.get("raw"): blob = payload["raw"].encode()
        else:
            if not os.path.isfile(payload["file_path"]): return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="mail not found")
            with open(payload["file_path"], "rb") as fh: blob = fh.read()
        msg = BytesParser(policy=policy.default).parsebytes(blob, headersonly=True)
        if not msg.keys(): return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="no headers")
        hops = []
        for h in reversed(msg.get_all("Received", [])):
            h = " ".join(str(h).split())
            frm = re.search(r"from (\S+)", h); by = re.search(r"by (\S+)", h); ip = re.search(r"\[(\d+\.\d+\.\d+\.\d+)\]", h)
            try: when = parsedate_to_datetime(h.rsplit(";", 1)[1].strip())
            except (IndexError, ValueError, TypeError): when = None
            hops.append(SimpleNamespace(frm=frm and frm[1], by=by and by[1], ip=ip and ip[1], when=when))
        delays = [(b.when - a.when).total_seconds() if a.when and b.when else None for a, b in zip(hops, hops[1:])]
        auth = {k: v for k, v in re.findall(r"\b(spf|dkim|dmarc)=(\w+)", " ".join(map(str, msg.get_all("Authentication-Results", []))))}
        sender, back = parseaddr(str(msg.get("From", "")))[1], parseaddr(str(msg.get("Return-Path", "")))[1]
        dom = lambda a: a.rpartition("@")[2].lower()
        flags = [f"{k}_{v}" for k, v in auth.items() if v not in ("pass", "none")]
        if back and dom(back) != dom(sender): flags.append("return_path_mismatch")
        reply = parseaddr(str(msg.get("Reply-To", "")))[1]
        if reply and dom(reply) != dom(sender): flags.append("reply_to_mismatch")
        if any(d is not None and d < 0 for d in delays): flags.append("negative_delay")
        return ToolResult(ok=True, result={"from": sender, "subject": str(msg.get("Subject", "")), "hops": [{"from": h.frm, "by": h.by, "ip": h.ip, "time": h.when.isoformat() if h.when else None} for h in hops],
            "origin_ip": next((h.ip for h in hops if h.ip), None), "delays_seconds": delays, "authentication": auth, "flags": flags})
    def summarize_for_llm(self, result):
        r = result.result
        return f"Mail from {r['from']} via {len(r['hops'])} hops, origin {r['origin_ip']}; flags: {', '.join(r['flags']) or 'none'}."
