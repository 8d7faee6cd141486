class Outcome:
    """A result class of the plugin's own."""

    def __init__(self, status, data=None, error=None):
        self.status, self.data, self.error = status, data, error


class Shapes:
    OPS = ["own", "failed", "as_dict", "bare", "stream", "timeout", "nothing"]

    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": self.OPS}}}

    def get_schema_for_op(self, op):
        if op == "bare":
            raise LookupError("no schema of its own")
        if op == "unlisted":  # no list has it
            return {"type": "object", "title": op, "properties": {"op": {"type": "string"}, "n": {"type": "integer", "minimum": 1}}, "required": ["op", "n"]}
        return {"type": "object", "title": op, "description": f"Answers as {op}.", "properties": {"n": {"type": "integer"}}, "additionalProperties": False} if op == "own" else None

    def execute(self, params, context, host):
        return getattr(self, params["op"])(params, context)

    def own(self, params, context):
        return Outcome("success", {"n": params.get("n", 0) + 1})

    def failed(self, params, context):
        return Outcome("error", error={"code": "label_missing", "message": "no such label: inbox"})

    async def as_dict(self, params, context):
        return {
            "status": "success",
            "data": {"user": context["user_id"], "agent": context["agent_key"]},
            "cost": {"tokens": 12, "api_calls": 2},
            "skips": [{"id": "f1", "name": "big.pdf", "reason": "too_large", "details": {"size": 9}}],
            "citations": [{"type": "web", "ref": "https://example.com", "label": "Example"}],
            "next_cursor": "page-2",
        }

    def unlisted(self, params, context):
        return {"status": "success", "data": params}

    def bare(self, params, context):
        return {"items": [1, 2]}

    async def stream(self, params, context):
        yield {"type": "progress", "message": "half way", "done": 1, "total": 2}
        yield {"type": "content", "data": "a piece"}
        yield {"status": "success", "data": {"pieces": 1}}

    def timeout(self, params, context):
        return {"status": "timeout"}

    def nothing(self, params, context):
        return None
