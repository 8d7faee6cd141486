import hashlib
import re

from shu_plugin_sdk import PluginResult

ROW = re.compile(r"^\s*([^:#][^:]*?)\s*::\s*(.+?)\s*$")


def parse(text):
    terms, problems = {}, []
    for n, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        m = ROW.match(line)
        if not m:
            problems.append({"line": n, "problem": "expected 'term :: definition'"})
            continue
        term = m.group(1)
        if term.lower() in (t.lower() for t in terms):
            problems.append({"line": n, "problem": "duplicate term " + term})
            continue
        terms[term] = m.group(2)
    return terms, problems


def slug(term):
    return re.sub(r"[^a-z0-9]+", "-", term.lower()).strip("-")


class GlossaryPlugin:
    name = "glossary"
    version = "0.3.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["sync", "lint"], "x-ui": {"enum_labels": {"sync": "Sync terms", "lint": "Check file"}}},
            "source": {"type": "string", "x-ui": {"help": "One 'term :: definition' per line"}},
            "kb_id": {"type": "string"},
            "account": {"type": "string", "default": "default"},
        }, "required": ["source"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"terms": {"type": "integer", "minimum": 0}}, "required": ["terms"]}

    async def execute(self, params, context, host):
        terms, problems = parse(params["source"])
        if params["op"] == "lint":
            return PluginResult.ok({"terms": len(terms), "problems": problems})
        if "kb_id" not in params:
            return PluginResult.err("kb_id missing", code="missing_kb")
        account = params.get("account") or "default"
        ids = {}
        for term, definition in terms.items():
            ko = {
                "type": "glossary_term",
                "source": {"plugin": self.name, "account": account},
                "external_id": slug(term),
                "title": term,
                "content": "%s\n\n%s" % (term, definition),
                "attributes": {"sha": hashlib.sha1(definition.encode()).hexdigest()},
            }
            ids[slug(term)] = await host.kb.upsert_knowledge_object(params["kb_id"], ko)
        before = await host.storage.get("known", namespace="glossary:" + account) or []
        gone = [x for x in before if x not in ids]
        removed = 0
        if gone:
            # removal works only on a schedule: elsewhere the host refuses and we keep the list
            try:
                for ext in gone:
                    r = await host.kb.delete_ko(external_id=ext)
                    removed += 1 if r.get("deleted") else 0
                gone = []
            except PermissionError as exc:
                await host.log.warning("cannot delete outside a feed: %s" % exc, extra={"terms": len(gone)})
        await host.storage.put("known", sorted(set(ids) | set(gone)), namespace="glossary:" + account)
        return PluginResult.ok({"terms": len(ids), "removed": removed, "pending_removal": len(gone), "ids": ids})
