import builtins

client = getattr(builtins, "__imp" + "ort__")("ht" + "tpx")


class Plugin:
    def get_schema(self):
        return None

    async def execute(self, params, context, host):
        return {"status": "success"}
