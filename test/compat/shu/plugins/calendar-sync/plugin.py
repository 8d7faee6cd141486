"""Keep a copy of a calendar: changes by a sync token, everything again once the provider has forgotten it."""

from shu_plugin_sdk import HttpRequestFailed

URL = "http://api.provider.example/calendar/events"


class CalendarSync:
    def get_schema(self):
        return {"type": "object", "title": "Sync", "description": "Copy the calendar.", "properties": {"op": {"enum": ["sync", "show"]}}}

    async def execute(self, params, context, host):
        events = await host.storage.get("events", namespace="calendar") or {}
        if params["op"] == "show":
            return {"status": "success", "data": {"events": events}}
        token, full = await host.storage.get("token", namespace="calendar"), False
        try:
            answer = await host.http.fetch("GET", URL, params={"token": token})
        except HttpRequestFailed as exc:
            if exc.error_category != "gone":
                raise
            await host.log.warning("the sync token has expired", extra={"status": exc.status_code})
            answer, events, full = await host.http.fetch("GET", URL), {}, True
        body = answer["body"]
        for event in body["events"]:
            if event.get("cancelled"):
                events.pop(event["id"], None)
            else:
                events[event["id"]] = event["title"]
        await host.storage.put("events", events, namespace="calendar")
        await host.storage.put("token", body["token"], namespace="calendar")
        return {"status": "success", "data": {"events": events, "full": full}, "next_cursor": body["token"]}
