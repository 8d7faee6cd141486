class Plugin:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"enum": ["list"]}}}
