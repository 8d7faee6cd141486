class DeskClient:
    """Thin wrapper around host.http; nothing here knows about operations."""

    def __init__(self, host, base, key):
        self._http = host.http
        self._base = base.rstrip("/")
        self._headers = {"X-Api-Key": key, "Accept": "application/json"}

    async def search(self, text, status=None, include_closed=False, tags=None):
        q = {"q": text, "closed": include_closed}
        if status:
            q["status"] = status
        if tags:
            q["tag"] = list(tags)
        r = await self._http.fetch("GET", self._base + "/tickets", headers=self._headers, params=q)
        return r["body"].get("tickets", [])

    async def get(self, ticket_id):
        r = await self._http.fetch_or_none("GET", "%s/tickets/%d" % (self._base, ticket_id), headers=self._headers)
        return None if r is None else r["body"]

    async def comment(self, ticket_id, text, key):
        r = await self._http.fetch("POST", "%s/tickets/%d/comments" % (self._base, ticket_id),
                                   headers=dict(self._headers, **{"Idempotency-Key": key}), json={"text": text})
        return r["body"]

    async def close(self, ticket_id, resolution, key):
        r = await self._http.fetch("PATCH", "%s/tickets/%d" % (self._base, ticket_id),
                                   headers=dict(self._headers, **{"Idempotency-Key": key}),
                                   json={"status": "closed", "resolution": resolution})
        return r["body"]
