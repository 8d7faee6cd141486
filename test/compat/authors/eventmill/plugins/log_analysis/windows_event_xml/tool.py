"""Windows events exported with `wevtutil qe /f:xml`."""
import os
import xml.etree.ElementTree as ET
from collections import Counter
from framework.plugins.protocol import ToolResult, ValidationResult
from framework.logging import structured  # noqa: F401  (kept for log_llm_interaction in later versions)

NS = "{http://schemas.microsoft.com/win/2004/08/events/event}"
INTERESTING = {4624: "logon", 4625: "logon failed", 4672: "special privileges", 4688: "process", 4697: "service installed", 4720: "user created", 1102: "log cleared", 7045: "service installed"}


def _event(el):
    sysel = el.find(NS + "System")
    data = {d.get("Name", str(i)): d.text for i, d in enumerate(el.iterfind(f"{NS}EventData/{NS}Data"))}
    return {"id": int(sysel.findtext(NS + "EventID")), "time": sysel.find(NS + "TimeCreated").get("SystemTime"),
            "computer": sysel.findtext(NS + "Computer"), "data": data}


class WindowsEventXml:
    def metadata(self):
        return {"tool_name": "windows_event_xml", "version": "1.0.0", "event_ids": list(INTERESTING)}

    def validate_inputs(self, payload):
        if not isinstance(payload.get("file_path"), str):
            return ValidationResult(ok=False, errors=["file_path must be a string"])
        ids = payload.get("event_ids", [])
        if isinstance(ids, str):
            ids = ids.split(",")
        if not all(str(i).strip().isdigit() for i in ids):
            return ValidationResult(ok=False, errors=["event_ids must be numbers"])
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        if not os.path.exists(payload["file_path"]):
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="file missing")
        ids = payload.get("event_ids") or []
        ids = {int(i) for i in (ids.split(",") if isinstance(ids, str) else ids)}
        text = open(payload["file_path"], encoding="utf-8-sig").read().strip()
        if not text.startswith("<Events"):
            text = "<Events>" + text + "</Events>"   # wevtutil writes no root
        try:
            events = [_event(e) for e in ET.fromstring(text).iter(NS + "Event")]
        except (ET.ParseError, AttributeError, TypeError, ValueError) as exc:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=f"not event XML: {exc}")
        if ids:
            events = [e for e in events if e["id"] in ids]
        logons = Counter((e["data"].get("TargetUserName"), e["data"].get("LogonType")) for e in events if e["id"] == 4624)
        return ToolResult(ok=True, result={
            "events": len(events), "by_id": {str(k): v for k, v in sorted(Counter(e["id"] for e in events).items())},
            "notable": [{"id": e["id"], "what": INTERESTING[e["id"]], "time": e["time"], "computer": e["computer"]} for e in events if e["id"] in INTERESTING],
            "logons": [{"user": u, "type": t, "count": n} for (u, t), n in logons.most_common()],
            "log_cleared": any(e["id"] == 1102 for e in events)})

    def summarize_for_llm(self, result):
        r = result.result
        return f"{r['events']} Windows events; ids: {', '.join(f'{k}x{v}' for k, v in r['by_id'].items())}." + (" AUDIT LOG WAS CLEARED." if r["log_cleared"] else "")
