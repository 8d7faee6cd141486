from .mailparse import split_mbox, to_record


class MboxImport(object):
    name = "mbox_import"
    version = "2.0.0"

    _props = {
        "mbox": {"type": "string", "minLength": 1, "x-ui": {"help": "Mailbox in mbox format"}},
        "kb_id": {"type": "string"},
        "labels": {"type": "array", "items": {"type": "string"}},
    }

    def get_schema(self):
        p = dict(self._props, op={"type": "string", "enum": ["import", "inspect"]})
        return {"type": "object", "properties": p, "required": ["op", "mbox"]}

    def get_schema_for_op(self, op):
        if op == "import":
            p = dict(self._props, op={"type": "string"})
            return {"type": "object", "title": "Import mailbox", "description": "Stores each message in a knowledge base.",
                    "properties": p, "required": ["mbox", "kb_id"]}
        if op == "inspect":
            return {"type": "object", "title": "Inspect mailbox", "description": "Counts messages and senders.",
                    "properties": {"op": {"type": "string"}, "mbox": self._props["mbox"]}, "required": ["mbox"]}
        return None

    def get_output_schema(self):
        return {"type": "object"}

    async def execute(self, params, context, host):
        raws = split_mbox(params["mbox"])
        if not raws:
            return {"status": "error", "error": {"code": "not_mbox", "message": "no 'From ' separator line found"}}
        mails = [to_record(r) for r in raws]
        if params["op"] == "inspect":
            senders = {}
            for m in mails:
                senders[m["sender"]] = senders.get(m["sender"], 0) + 1
            return {"status": "success", "data": {"messages": len(mails), "senders": senders,
                                                   "threads": len({m["thread_id"] or m["message_id"] for m in mails})}}
        stored, skipped = [], []
        for m in mails:
            if not m["message_id"]:
                skipped.append({"id": "?", "name": m["subject"], "reason": "unsupported_format", "details": {"why": "no Message-ID"}})
                continue
            res = await host.kb.ingest_email(params["kb_id"], labels=params.get("labels") or [], **m)
            if res.get("skipped"):
                skipped.append({"id": m["message_id"], "reason": "other", "details": {"skip_reason": res.get("skip_reason")}})
            else:
                stored.append({"message_id": m["message_id"], "words": res["word_count"]})
        return {"status": "success", "data": {"stored": stored, "stored_count": len(stored), "skipped_count": len(skipped)}, "skips": skipped}
