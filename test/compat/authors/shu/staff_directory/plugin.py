from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional
from urllib.parse import quote, urljoin


@dataclass
class Answer:
    status: str = "success"
    data: Dict[str, Any] = field(default_factory=dict)
    error: Optional[Dict[str, str]] = None
    diagnostics: List[str] = field(default_factory=list)

    @classmethod
    def no(cls, code, message):
        return cls("error", {}, {"code": code, "message": message})


class StaffDirectory:
    name = "staff_directory"
    version = "1.1"

    def get_schema(self):
        return {"type": "object", "title": "Directory", "description": "Looks colleagues up", "properties": {
            "op": {"type": "string", "enum": ["person", "chain", "mine"]},
            "email": {"type": ["string", "null"], "format": "email", "x-binding": "identity:google_email"},
            "directory": {"type": "string", "x-binding": "env:STAFF_DIRECTORY_URL"}}, "required": ["op", "directory"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"person": {"type": "object"}, "chain": {"type": "array", "items": {"type": "string"}}}}

    async def _lookup(self, host, base, email):
        key = "staff:" + email.lower()
        hit = await host.cache.get(key)
        if hit is not None:
            return hit
        got = await host.http.fetch_or_none("GET", urljoin(base.rstrip("/") + "/", "people/" + quote(email.lower(), safe="")))
        if got is None:
            return None
        await host.cache.set(key, got["body"], ttl_seconds=900)
        return got["body"]

    async def execute(self, params, context, host):
        notes = []
        email = params.get("email")
        if not email:
            email = host.identity.get_primary_email("google") or host.identity.user_email
            notes.append("email taken from the identity")
        if not email:
            return Answer.no("no_email", "give an email or connect an account")
        person = await self._lookup(host, params["directory"], email)
        if person is None:
            return Answer.no("person_not_found", email)
        if params["op"] in ("person", "mine"):
            return Answer(data={"person": person, "user_id": getattr(context, "user_id", None) or (context.get("user_id") if isinstance(context, dict) else None)}, diagnostics=notes)
        chain, seen = [person["name"]], {email.lower()}
        while person.get("manager"):
            if person["manager"].lower() in seen:
                return Answer.no("cycle", "%s reports to themselves" % person["manager"])
            seen.add(person["manager"].lower())
            person = await self._lookup(host, params["directory"], person["manager"])
            if person is None:
                notes.append("a manager is not in the directory")
                break
            chain.append(person["name"])
        return Answer(data={"chain": chain, "depth": len(chain) - 1}, diagnostics=notes)
