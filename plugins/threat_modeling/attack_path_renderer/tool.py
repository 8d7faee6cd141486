"""attack_path_renderer: what do these attack paths look like?"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .rendering import tooling
    from .rendering.drawing import Drawing, percent
    from .rendering.formats import FILES, FORMATS
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from rendering import tooling
    from rendering.drawing import Drawing, percent
    from rendering.formats import FILES, FORMATS

FITTING = ("json_events", "text")
NAME = "attack_path_renderer"
_MOST_FILE = 64 << 20
_MOST_CONTENT = 200_000


class AttackPathRenderer:
    """Draws some paths."""

    def __init__(self) -> None:
        self._manifest = tooling.load_json(_HERE, "manifest.json")
        self._schema = tooling.load_json(_HERE, self._manifest["input_schema"])

    def metadata(self) -> Dict[str, Any]:
        """The manifest."""
        return dict(self._manifest)

    def validate_inputs(self, payload: Any) -> ValidationResult:
        """Hold the request against the input schema, and paths in it against their own rules."""
        written = tooling.as_written(payload, self._schema)
        errors = tooling.check(written, self._schema)
        if not errors and "attack_paths" in written:
            try:
                Drawing(written["attack_paths"], written.get("max_paths", 10))
            except tooling.Refused as err:
                errors = list(err.details["errors"])
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Draw the paths in the formats asked for, each into a file."""
        payload = tooling.as_written(payload, self._schema)
        try:
            described, chosen = _described(payload, context)
            drawing = Drawing(described, payload.get("max_paths", payload.get("limit", 10)))
            if not drawing.paths:
                raise tooling.Refused("INPUT_VALIDATION_FAILED", "there is no path to draw", errors=["paths: there is none"])
            return _rendered(payload, context, drawing, chosen)
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)

    def summarize_for_llm(self, result: Any) -> str:
        """What was drawn, and the likeliest path in words."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "%s: %s" % (NAME, tooling.member(result, "message") or "no result")
        parts = ["%s: %d of %d paths drawn, %d nodes, %d steps, as %s" % (
            tooling.shorten(r["artifact"]["name"], 80), r["paths_drawn"], r["paths"], r["nodes"], r["steps"], ", ".join(r["formats"]))]  # fmt: skip
        for way in r["ways"][:3]:
            parts.append("path %d (%s): %s" % (way["rank"], percent(way["probability"]), tooling.shorten(" > ".join(way["nodes"]), 160)))
        return tooling.shorten("; ".join(parts) + ".", 950)


def _described(payload: Dict[str, Any], context: Any) -> Tuple[Any, tooling.Chosen]:
    if "attack_paths" in payload:
        return payload["attack_paths"], tooling.Chosen("", "the request", None, None, None)
    refs = [ref for ref in getattr(context, "artifacts", None) or [] if getattr(ref, "source_tool", None) == "attack_path_generator"]
    named = any(payload.get(name) for name in ("artifact_id", "file_path", "path"))
    chosen = tooling.choose({"artifact_id": refs[-1].artifact_id} if refs and not named else payload, context, FITTING)
    try:
        with open(chosen.path, "rb") as file:
            data = file.read(_MOST_FILE + 1)
        if len(data) > _MOST_FILE:
            raise tooling.Refused("ARTIFACT_UNREADABLE", "%s has more than %d bytes; paths are smaller" % (chosen.name, _MOST_FILE), file_path=chosen.path)
        return json.loads(data.decode("utf-8-sig")), chosen
    except OSError as err:
        raise tooling.Refused("ARTIFACT_UNREADABLE", "%s cannot be read: %s" % (chosen.name, err.strerror or err), file_path=chosen.path) from None
    except (ValueError, RecursionError) as err:
        raise tooling.Refused("ARTIFACT_UNREADABLE", "%s is no JSON: %s" % (chosen.name, tooling.shorten(str(err), 200)), file_path=chosen.path) from None


def _rendered(payload: Dict[str, Any], context: Any, drawing: Drawing, chosen: tooling.Chosen) -> ToolResult:
    formats = list(dict.fromkeys(payload.get("formats") or ["mermaid"]))
    outputs: List[Dict[str, Any]] = []
    contents: Dict[str, str] = {}
    notes: List[str] = []
    for i, name in enumerate(formats):
        tooling.tell(context, "drawing", i + 1, len(formats), "formats")
        content = FORMATS[name](drawing)
        if tooling.can_register(context):
            ending, kind = FILES[name]
            path = tooling.new_file(context, NAME, chosen, ending)
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
            outputs.append(tooling.register(context, path, kind, NAME, {"source_artifact": chosen.artifact_id, "format": name, "paths": len(drawing.paths)}))
        if len(content) <= _MOST_CONTENT:
            contents[name] = content
        else:
            notes.append("%s has %d characters and stands in its artifact only." % (name, len(content)))
    if drawing.total > len(drawing.paths):
        notes.append("%d paths are not drawn; max_paths says how many are." % (drawing.total - len(drawing.paths)))
    result = {
        "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name},
        "paths": drawing.total, "paths_drawn": len(drawing.paths), "nodes": len(drawing.nodes), "steps": len(drawing.steps), "formats": formats,
        "visualization": contents.get(formats[0]), "contents": contents,
        "ways": [
            {"rank": p.rank, "probability": p.probability, "nodes": [drawing.nodes[p.steps[0][1]].name] + [drawing.nodes[key[2]].name for key in p.steps]} for p in drawing.paths[:50]
        ],
        "layers": drawing.layers, "notes": notes,
    }  # fmt: skip
    return ToolResult(ok=True, result=result, output_artifacts=outputs or None)
