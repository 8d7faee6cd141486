from .words import WORD
from plugins.manifest_keys import words
import plugins


class AllKeys:
    """A class whose name for itself differs from the manifest's."""

    name = "something-else"

    def get_schema(self):
        return {
            "type": "object",
            "properties": {"op": {"type": "string", "enum": ["list", "ingest"]}, "limit": {"type": ["integer", "null"], "default": 5}},
            "required": ["op"],
            "additionalProperties": True,
        }

    async def execute(self, params, context, host):
        same = words.WORD is WORD
        return {"status": "success", "data": {"op": params["op"], "word": WORD, "same": same, "namespace": getattr(plugins, "__file__", None) is None}}
