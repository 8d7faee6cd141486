class Plugin:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["look", "change", "escape"]}}}

    async def execute(self, params, context, host):
        return await getattr(self, params["op"])(host)

    async def look(self, host):
        said = {}
        for name in ("kb", "cursor", "log", "utils", "http", "secrets"):
            try:
                said[name] = hasattr(host, name)
            except AttributeError:
                said[name] = "AttributeError"
            except Exception as exc:
                said[name] = type(exc).__name__
        return {"status": "success", "data": said, "diagnostics": ["http is not granted: reduced fidelity"]}

    async def change(self, host):
        said = []
        for thing, name in ((host, "http"), (host, "kb"), (host.log, "info"), (host.cursor, "get")):
            try:
                setattr(thing, name, lambda *_: None)
                said.append("changed")
            except AttributeError:
                said.append("AttributeError")
        return {"status": "success", "data": said}

    async def escape(self, host):
        return {"status": "success", "data": await host.secrets.get("token")}
