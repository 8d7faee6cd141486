from urllib.parse import urlencode
from xml.sax.saxutils import escape

NAMES = ["req" + "uests", "ht" + "tpx", "url" + "lib3", "urllib" + ".request", "sh" + "u.core"]


class Plugin:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["try_all", "harmless"]}}}

    async def execute(self, params, context, host):
        return {"status": "success", "data": getattr(self, params["op"])()}

    def try_all(self):
        said = {}
        for name in NAMES:
            try:
                exec("im" + "port " + name)
                said[name] = "imported"
            except ImportError as exc:
                said[name] = "denied" if "is denied" in str(exc) else str(exc)
        return said

    def harmless(self):
        return [urlencode({"a": "b c"}), escape("<&>")]
