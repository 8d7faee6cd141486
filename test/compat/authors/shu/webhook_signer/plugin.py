import hashlib
import hmac
import json
import time

from shu_plugin_sdk import PluginResult


class WebhookSigner:
    name = "webhook_signer"
    version = "1.0.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["rotate", "send", "verify", "forget"]},
            "url": {"type": "string"}, "payload": {"type": "object"},
            "body": {"type": "string"}, "signature": {"type": "string"},
            "tolerance": {"type": "integer", "minimum": 0},
            "new_key": {"type": "string", "minLength": 8, "x-ui": {"help": "Replaces your own key"}},
        }, "required": ["op"]}

    def get_output_schema(self):
        return {"type": "object"}

    @staticmethod
    def sign(key, stamp, body):
        mac = hmac.new(key.encode(), ("%d.%s" % (stamp, body)).encode(), hashlib.sha256).hexdigest()
        return "t=%d,v1=%s" % (stamp, mac)

    def check(self, key, header, body, tolerance):
        parts = dict(p.split("=", 1) for p in header.split(",") if "=" in p)
        try:
            stamp = int(parts["t"])
        except (KeyError, ValueError):
            return "malformed"
        if not hmac.compare_digest(self.sign(key, stamp, body).split("v1=")[1], parts.get("v1", "")):
            return "mismatch"
        if tolerance and abs(time.time() - stamp) > tolerance:
            return "stale"
        return "valid"

    async def execute(self, params, context, host):
        op = params["op"]
        if op == "rotate":
            if not params.get("new_key"):
                return PluginResult.err("new_key is missing", code="missing_key")
            had = await host.secrets.get("webhook_key")
            await host.secrets.set("webhook_key", params["new_key"])
            again = await host.secrets.get("webhook_key")
            return PluginResult.ok({"replaced": had is not None, "active": again == params["new_key"]})
        if op == "forget":
            await host.secrets.delete("webhook_key")
            left = await host.secrets.get("webhook_key")
            return PluginResult.ok({"forgotten": True, "system_key_remains": left is not None})
        key = await host.secrets.get("webhook_key")
        if op == "verify":
            verdict = self.check(key, params.get("signature", ""), params.get("body", ""), params.get("tolerance", 300))
            return PluginResult.ok({"verdict": verdict})
        body = json.dumps(params.get("payload") or {}, sort_keys=True, separators=(",", ":"))
        r = await host.http.fetch("POST", params["url"], data=body,
                                  headers={"Content-Type": "application/json", "X-Signature": self.sign(key, int(time.time()), body)})
        return PluginResult.ok({"delivered": True, "status_code": r["status_code"], "bytes": len(body)})
