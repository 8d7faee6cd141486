from __future__ import annotations

import json
import re

from minivcard import dump as vcard

from shu_plugin_sdk import HttpRequestFailed, IngestionResult, PluginResult, Skip, SkipReason

DIGITS = re.compile(r"\D+")


def phone(raw, country="49"):
    if not raw:
        return None
    d = DIGITS.sub("", raw)
    if raw.strip().startswith("+"):
        return "+" + d
    if d.startswith("00"):
        return "+" + d[2:]
    return "+" + country + d.lstrip("0") if d else None


def normal(c):
    emails = sorted({e.strip().lower() for e in c.get("emails") or [] if "@" in e})
    phones = [p for p in (phone(x) for x in c.get("phones") or []) if p]
    name = " ".join(x for x in ((c.get("first") or "").strip(), (c.get("last") or "").strip()) if x) or (emails[0] if emails else None)
    return {"id": str(c["id"]), "name": name, "emails": emails, "phones": phones, "org": c.get("company"), "note": c.get("note")}


class CrmContacts:
    name = "crm_contacts"
    version = "4.0.0"

    def get_schema(self):
        return {"type": "object", "title": "Contacts", "description": "Keeps CRM contacts in the knowledge base", "properties": {
            "op": {"type": "string", "enum": ["delta", "full", "export_vcard"], "default": "delta"},
            "base_url": {"type": "string"}, "kb_id": {"type": "string"},
            "contacts": {"type": "array", "items": {"type": "object", "required": ["id"]}}}, "required": ["op"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"written": {"type": "integer"}, "removed": {"type": "integer"}, "vcard": {"type": "string"}}}

    async def execute(self, params, context, host):
        if params["op"] == "export_vcard":
            people = [normal(c) for c in params.get("contacts") or []]
            if not people:
                return PluginResult.err("contacts are missing", code="no_contacts")
            return PluginResult.ok({"vcard": "".join(vcard(p["name"] or p["id"], p["emails"], p["phones"], p["org"], p["note"]) for p in people), "count": len(people)})
        if not params.get("base_url") or not params.get("kb_id"):
            return PluginResult.err("base_url and kb_id are needed", code="bad_request")
        kb = params["kb_id"]
        head = {"Authorization": "Token " + (await host.secrets.get("crm_key") or "")}
        token = None
        if params["op"] == "delta":
            stored = await host.cursor.get(kb)
            token = json.loads(stored)["delta"] if stored else None
        notes, calls = [], 0
        try:
            page = await self._fetch(host, params, head, token)
        except HttpRequestFailed as exc:
            if exc.status_code != 410:
                raise
            # the provider forgot our token: start over
            notes.append("delta token expired (%s), full sync" % exc.error_category)
            await host.cursor.delete_safe(kb)
            token = None
            page = await self._fetch(host, params, head, None)
        written, gone, skips = 0, [], []
        while True:
            calls += 1
            for c in page.get("items") or []:
                if c.get("deleted"):
                    gone.append(str(c["id"]))
                    continue
                p = normal(c)
                if not p["name"]:
                    skips.append(Skip(id=p["id"], reason=SkipReason.EMPTY_EXTRACTION))
                    continue
                await host.kb.upsert_knowledge_object(kb, {
                    "type": "contact", "source": {"plugin": self.name, "account": "crm"}, "external_id": p["id"], "title": p["name"],
                    "content": "\n".join([p["name"], p["org"] or "", *p["emails"], *p["phones"]]).strip(), "attributes": {"org": p["org"]}})
                written += 1
            if not page.get("next"):
                break
            page = (await host.http.fetch("GET", page["next"], headers=head))["body"]
        removed = 0
        if gone:
            try:
                removed = (await host.kb.delete_kos_batch(external_ids=gone))["deleted_count"]
            except PermissionError:
                notes.append("%d tombstones left: no deletion outside a feed" % len(gone))
        if page.get("delta"):
            await host.cursor.set(kb, json.dumps({"delta": page["delta"]}))
        return IngestionResult.ok({"written": written, "removed": removed, "tombstones": len(gone), "restarted": bool(notes and "expired" in notes[0]), "pages": calls},
                                  skips, cost={"api_calls": calls}, diagnostics=notes)

    async def _fetch(self, host, params, head, token):
        q = {"delta": token} if token else {"full": True}
        return (await host.http.fetch("GET", params["base_url"] + "/contacts", headers=head, params=q))["body"]
