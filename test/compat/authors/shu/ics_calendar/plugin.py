from datetime import datetime, timedelta, timezone

import tinyics          # bundled in vendor/


class Plugin:
    name = "ics_calendar"
    version = "0.5.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["ingest", "agenda"]},
            "ics": {"type": ["string", "null"]}, "url": {"type": ["string", "null"], "x-ui": {"help": "Address of the calendar"}},
            "from_day": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}, "days": {"type": "integer", "default": 7, "minimum": 1},
            "kb_id": {"type": "string", "x-ui": {"hidden": True}}}, "required": ["op"]}

    def get_output_schema(self):
        return None

    async def execute(self, params, context, host):
        text = params.get("ics")
        if not text and params.get("url"):
            r = await host.http.fetch("GET", params["url"], headers={"Accept": "text/calendar"})
            text = r["body"]
        if not text:
            return {"status": "error", "error": {"code": "no_calendar", "message": "give ics or url"}}
        try:
            events = tinyics.read(text)
        except tinyics.IcsError as exc:
            return {"status": "error", "error": {"code": "bad_calendar", "message": str(exc)}}
        events = [e for e in events if "start" in e and e.get("status", "").upper() != "CANCELLED"]
        events.sort(key=lambda e: e["start"])
        if params["op"] == "agenda":
            day = datetime.fromisoformat(params.get("from_day") or events[0]["start"].date().isoformat()).replace(tzinfo=timezone.utc) if events or params.get("from_day") else None
            if day is None:
                return {"status": "success", "data": {"agenda": [], "busy_minutes": 0}}
            until = day + timedelta(days=params.get("days") or 7)
            rows = [e for e in events if e["start"] < until and e["end"] > day]
            busy = sum((min(e["end"], until) - max(e["start"], day)).total_seconds() for e in rows if not e["all_day"]) / 60
            return {"status": "success", "data": {"busy_minutes": int(busy), "agenda": [
                {"when": e["start"].strftime("%Y-%m-%d" if e["all_day"] else "%Y-%m-%d %H:%M"), "what": e.get("summary", ""), "where": e.get("location")} for e in rows]}}
        kb = params.get("kb_id")
        if not kb:
            return {"status": "error", "error": {"code": "missing_kb", "message": "kb_id"}}
        seen = await host.cursor.get(kb) or ""
        new = 0
        for e in events:
            stamp = e.get("last_modified", "")
            if stamp and stamp <= seen:
                continue
            await host.kb.ingest_text(kb, title=e.get("summary") or "Event", source_id=e.get("uid") or e["start"].isoformat(),
                                      content="%s\n%s - %s\n%s" % (e.get("summary", ""), e["start"].isoformat(), e["end"].isoformat(), e.get("description", "")))
            new += 1
        top = max([e.get("last_modified", "") for e in events] + [seen])
        if top and top != seen:
            await host.cursor.set(kb, top)
        return {"status": "success", "data": {"ingested": new, "next_cursor": top or None}, "next_cursor": top or None}
