from collections import Counter

from .formats import UnknownFormat, load, versions

COPYLEFT = ("GPL-", "AGPL-", "LGPL-", "MPL-", "EPL-")


class ToolResult:
    def __init__(self, status, data, error):
        self.status, self.data, self.error = status, data, error

    def model_dump(self):
        return {"status": self.status, "data": self.data, "error": self.error}

    @classmethod
    def good(cls, **data):
        return cls("success", data, None)

    @classmethod
    def bad(cls, code, message):
        return cls("error", None, {"code": code, "message": message})


class SbomInspector:
    name, version = "sbom_inspector", "0.9.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["licences", "diff", "advisories"]},
            "sbom": {"type": "object"}, "other": {"type": "object", "x-ui": {"show_when": {"field": "op", "equals": "diff"}}},
            "policy": {"type": "string", "enum": ["allow-all", "no-copyleft"]},
            "osv_url": {"type": "string", "x-ui": {"hidden": True}}}, "required": ["op", "sbom"]}

    def get_output_schema(self):
        return {"type": "object"}

    async def execute(self, params, context, host):
        try:
            comps = load(params["sbom"])
            other = load(params["other"]) if params.get("other") else None
        except UnknownFormat as exc:
            return ToolResult.bad("unknown_format", str(exc))
        except KeyError as exc:
            return ToolResult.bad("broken_sbom", "component without %s" % exc)
        return await getattr(self, "_" + params["op"])(params, host, comps, other)

    async def _licences(self, params, host, comps, other):
        count = Counter(l for c in comps for l in (c.licences or ("UNKNOWN",)))
        viol = []
        if params.get("policy") == "no-copyleft":
            viol = sorted({c.name for c in comps for l in c.licences if any(tok.startswith(COPYLEFT) for tok in l.replace("(", " ").split())})
        return ToolResult.good(components=len(comps), licences=dict(count.most_common()), violations=viol,
                               chart={"kind": "pie", "labels": list(count), "values": list(count.values())})

    async def _diff(self, params, host, comps, other):
        if other is None:
            return ToolResult.bad("missing_other", "diff needs a second document")
        a, b = versions(comps), versions(other)
        return ToolResult.good(added=sorted(set(b) - set(a)), removed=sorted(set(a) - set(b)),
                               changed={k: [a[k], b[k]] for k in sorted(set(a) & set(b)) if a[k] != b[k]})

    async def _advisories(self, params, host, comps, other):
        base = (params.get("osv_url") or "https://api.osv.dev").rstrip("/")
        purls = [c.purl for c in comps if c.purl]
        fresh, hits = [], {}
        for p in purls:
            known = await host.cache.get("osv:" + p)
            if known is None:
                fresh.append(p)
            elif known:
                hits[p] = known
        if fresh:
            r = await host.http.fetch("POST", base + "/v1/querybatch", json={"queries": [{"package": {"purl": p}} for p in fresh]})
            answers = r["body"].get("results") or []
            if len(answers) != len(fresh):
                return ToolResult.bad("provider_mismatch", "%d answers for %d questions" % (len(answers), len(fresh)))
            for p, a in zip(fresh, answers):
                ids = [v["id"] for v in (a or {}).get("vulns") or []]
                await host.cache.set_safe("osv:" + p, ids, ttl_seconds=600)
                if ids:
                    hits[p] = ids
        return ToolResult.good(checked=len(purls), asked=len(fresh), vulnerable=hits)
