class Plugin:
    def get_schema(self):
        properties = {"op": {"type": "string", "enum": ["sync", "large", "huge"]}, "kb_id": {"type": "string"}, "reset_cursor": {"type": "boolean"}}
        return {"type": "object", "properties": properties, "required": ["op"], "additionalProperties": False}

    async def execute(self, params, context, host):
        if params["op"] == "large":  # more than a result may have
            return {"status": "success", "data": "x" * (2 << 20)}
        if params["op"] == "huge":  # more than a line to the host may have
            return {"status": "success", "data": "x" * (5 << 20)}
        kb, run = params["kb_id"], (await host.storage.get("runs") or 0) + 1
        await host.storage.put("runs", run)
        told, before = params.get("reset_cursor", False), await host.cursor.get(kb)
        if told:
            await host.cursor.delete(kb)
        if run == 1:
            await host.cursor.set(kb, "first")
        if run <= 2:
            raise RuntimeError(f"run {run} was told {told} and found {before}")
        await host.cursor.set(kb, "last")
        return {"status": "success", "data": {"run": run, "told": told, "found": before}}
