import importlib.util, json
from pathlib import Path
import jsonschema

HERE = Path(__file__).resolve().parent.parent
M = json.loads((HERE / "manifest.json").read_text())


def load(rel):
    return json.loads((HERE / rel).read_text())


def tool():
    spec = importlib.util.spec_from_file_location("t_" + M["tool_name"], HERE / M["entry_point"])
    mod = importlib.util.module_from_spec(spec)
    import sys
    sys.modules[spec.name] = mod
    spec.loader.exec_module(mod)
    return getattr(mod, M["class_name"])()


class R:
    def __init__(self, d):
        for k in ("ok", "result", "error_code", "message", "details", "output_artifacts"):
            setattr(self, k, d.get(k))


def test_manifest():
    for k in ("tool_name", "version", "pillar", "entry_point", "class_name", "stability", "timeout_class"):
        assert M[k]
    assert M["pillar"] == HERE.parent.name


def test_schemas_and_examples():
    for side, ex in (("input", "request"), ("output", "response")):
        s = load(f"schemas/{side}.schema.json")
        jsonschema.Draft202012Validator.check_schema(s)
        jsonschema.validate(load(f"examples/{ex}.example.json"), s)


def test_validate_inputs():
    t = tool()
    assert t.validate_inputs(load("examples/request.example.json")).ok
    assert not t.validate_inputs({'elements': []}).ok


def test_summary_and_metadata():
    t = tool()
    s = t.summarize_for_llm(R(load("examples/response.example.json")))
    assert s and len(s) < 2000
    md = t.metadata()
    assert md["tool_name"] == M["tool_name"] and md["version"]
