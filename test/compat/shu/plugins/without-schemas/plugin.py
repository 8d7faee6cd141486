class Plugin:
    """No list of operations, and a schema for one of them."""

    def get_schema(self):
        raise NotImplementedError

    def get_output_schema(self):
        raise NotImplementedError

    def get_schema_for_op(self, op):
        if op == "one":
            return {
                "type": "object",
                "title": "One",
                "description": "The one with a schema.",
                "properties": {"x": {"type": ["integer", "null"]}},
                "additionalProperties": False,
            }
        return None

    async def execute(self, params, context, host):
        return {"status": "success", "data": dict(params)}
