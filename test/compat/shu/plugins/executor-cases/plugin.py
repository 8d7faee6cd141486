from types import SimpleNamespace


class Plugin:
    def get_schema(self):
        properties = {"op": {"type": "string", "enum": ["echo", "raises", "lies", "lies_in_a_dict"]}, "limit": {"type": "integer"}}
        return {"type": "object", "properties": properties, "required": ["op"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"params": {"type": "object"}}, "required": ["params"]}

    async def execute(self, params, context, host):
        if params["op"] == "raises":
            raise RuntimeError("the provider changed its mind")
        if params["op"] == "lies":
            return SimpleNamespace(status="success", data={"something": "else"}, error=None)
        if params["op"] == "lies_in_a_dict":
            return {"status": "success", "data": {"something": "else"}}
        return {"status": "success", "data": {"params": params}}
