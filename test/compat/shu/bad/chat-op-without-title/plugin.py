class Plugin:
    def get_schema(self):
        return {"type": "object", "properties": {"limit": {"type": "integer"}}}

    async def execute(self, params, context, host):
        return {"status": "success"}
