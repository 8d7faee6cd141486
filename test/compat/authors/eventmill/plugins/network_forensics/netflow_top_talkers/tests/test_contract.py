"""Contract test (unittest flavour, also collected by pytest)."""
import json, os, sys, unittest
from types import SimpleNamespace as NS

BASE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BASE)


def j(*p):
    with open(os.path.join(BASE, *p), encoding="utf-8") as fh:
        return json.load(fh)


class ContractTest(unittest.TestCase):
    def setUp(self):
        import importlib.util as u
        self.m = j("manifest.json")
        sp = u.spec_from_file_location("contract_" + self.m["tool_name"], os.path.join(BASE, "tool.py"))
        mod = u.module_from_spec(sp); sys.modules[sp.name] = mod; sp.loader.exec_module(mod)
        self.t = getattr(mod, self.m["class_name"])()

    def test_examples(self):
        import jsonschema
        jsonschema.validate(j("examples", "request.example.json"), j("schemas", "input.schema.json"))
        jsonschema.validate(j("examples", "response.example.json"), j("schemas", "output.schema.json"))

    def test_accepts_and_rejects(self):
        self.assertTrue(self.t.validate_inputs(j("examples", "request.example.json")).ok)
        self.assertFalse(self.t.validate_inputs({'top': 0}).ok)

    def test_summary(self):
        d = {"ok": True, "result": None, "error_code": None, "message": None, "details": None, "output_artifacts": None}
        d.update(j("examples", "response.example.json"))
        out = self.t.summarize_for_llm(NS(**d))
        self.assertTrue(0 < len(out) < 2000)

    def test_metadata(self):
        md = self.t.metadata()
        self.assertIn("tool_name", md); self.assertIn("version", md)


if __name__ == "__main__":
    unittest.main()
