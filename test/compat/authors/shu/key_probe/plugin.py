import json
from collections import namedtuple

Res = namedtuple("Res", "status data error")


class Plugin:
    name = "licence_probe"          # differs from the manifest, which wins
    version = "0.0.7"

    def get_schema(self):
        return {"type": "object",
                "properties": {"op": {"type": "string", "enum": ["whoami", "seats"]},
                               "domain": {"type": ["string", "null"], "x-binding": "identity:google_email"},
                               "base_url": {"type": "string"}},
                "required": ["op"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"seats": {"type": "integer"}}}

    async def execute(self, params, context, host):
        me = host.identity.get_current_user_identity()
        if params["op"] == "whoami":
            return Res("success", {"user_known": bool(me.get("user_id")), "same_user": me.get("user_id") == host.identity.user_id,
                                   "google": host.identity.get_primary_email("google"), "providers": sorted(host.identity.providers or {})}, None)
        key = await host.secrets.get("vendor_admin")
        r = await host.http.fetch("GET", params["base_url"] + "/seats", headers={"X-Key": key})
        body = r["body"] if isinstance(r["body"], dict) else json.loads(r["body"])
        used, total = int(body["used"]), int(body["total"])
        if used > total:
            return Res("error", {"seats": total}, {"code": "over_quota", "message": "%d of %d" % (used, total)})
        return Res("success", {"seats": total, "free": total - used, "usage": round(100.0 * used / total, 1) if total else None}, None)
