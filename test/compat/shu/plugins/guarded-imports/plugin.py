import builtins
import sys
from urllib.parse import urlencode
from xml.sax.saxutils import escape

NAMES = ["req" + "uests", "ht" + "tpx", "url" + "lib3", "urllib" + ".request", "sh" + "u.core"]


class Plugin:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["try_all", "sideways", "harmless"]}}}

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

    def sideways(self):
        """By every other way that leads to a module; vendor/ has one of that name."""
        machinery, loaded = "import" + "lib", sys.modules
        ways = {
            "builtins": lambda: getattr(builtins, "__imp" + "ort__")(NAMES[0]),
            "machinery": lambda: loaded[machinery].import_module(NAMES[3]).urlopen,
            "loaded": lambda: loaded[NAMES[3]].urlopen,
            "attribute": lambda: loaded["urllib"].request.urlopen,
            "evaluated": lambda: eval("__imp" + f"ort__('{NAMES[2]}')"),
            "compiled": lambda: exec(compile(f"from {NAMES[0]} import MINE", "vendor", "exec"), {}),
            "run": lambda: __import__("runpy").run_module(NAMES[0]),
            "inside": lambda: exec(f"from {NAMES[4].partition('.')[0]} import core"),
        }
        said = {}
        for way, reach in ways.items():
            try:
                said[way] = f"reached {reach()}"
            except (ImportError, AttributeError, KeyError) as exc:
                said[way] = "denied" if "is denied" in str(exc) else f"not there ({type(exc).__name__})"
        return said

    def harmless(self):
        return [urlencode({"a": "b c"}), escape("<&>")]
