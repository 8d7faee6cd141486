"""image_analyzer: what is this image, what does it give away, what is hidden in it?"""

from __future__ import annotations

import os
import stat
import sys
from typing import Any, Dict, List

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .image import look, seen, tooling
    from .image.formats import Image
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from image import look, seen, tooling
    from image.formats import Image

FITTING = ("image",)
NAME = "image_analyzer"


class ImageAnalyzer:
    """Analyses one image."""

    def __init__(self) -> None:
        self._manifest = tooling.load_json(_HERE, "manifest.json")
        self._schema = tooling.load_json(_HERE, self._manifest["input_schema"])

    def metadata(self) -> Dict[str, Any]:
        """The manifest."""
        return dict(self._manifest)

    def validate_inputs(self, payload: Any) -> ValidationResult:
        """Hold the request against the input schema."""
        errors = tooling.check(tooling.as_written(payload, self._schema), self._schema)
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Read the file's parts, then all of it, then let a model look."""
        payload = tooling.as_written(payload, self._schema)
        try:
            return _analysed(payload, context, tooling.choose(payload, context, FITTING))
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)

    def summarize_for_llm(self, result: Any) -> str:
        """What it is, what stands out, and what a model saw."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "%s: %s" % (NAME, tooling.member(result, "message") or "no result")
        i = r["image"]
        parts = ["%s: %s, %d by %d pixels, %d bytes, sha256 %s" % (tooling.shorten(r["artifact"]["name"], 80), i["format"].upper(), i["width"], i["height"], r["file"]["size"], r["file"]["sha256"])]
        tags = r["metadata"]["tags"]
        camera = " ".join(str(tags[n]) for n in ("make", "model") if tags.get(n))
        if camera or tags.get("software"):
            parts.append("made with " + tooling.shorten(", ".join(t for t in (camera, str(tags.get("software") or "")) if t), 100))
        if tags.get("taken"):
            parts.append("taken %s" % tooling.shorten(str(tags["taken"]), 40))
        for one in r["findings"][:4]:
            parts.append("%s %s: %s%s" % (one["severity"], one["kind"], tooling.shorten(one["why"], 110), "" if one["offset"] is None else " (offset %d)" % one["offset"]))
        if not r["findings"]:
            parts.append("nothing stands out")
        if r["model"]:
            parts.append("a model sees, unverified: " + tooling.shorten(r["model"]["description"], 200))
        return tooling.shorten("; ".join(parts) + ".", 950)


def _analysed(payload: Dict[str, Any], context: Any, chosen: tooling.Chosen) -> ToolResult:
    limit = payload.get("limit", 50)
    notes: List[str] = []
    try:
        info = os.stat(chosen.path)
        if not stat.S_ISREG(info.st_mode):
            raise tooling.Refused("ARTIFACT_UNREADABLE", "%s is not a regular file" % chosen.name, file_path=chosen.path)
        with open(chosen.path, "rb") as file:
            told = lambda done: tooling.tell(context, "reading " + chosen.name, done, info.st_size)  # noqa: E731
            image = Image(file, info.st_size, lambda done: None)
            if not image.format:
                raise tooling.Refused("ARTIFACT_UNREADABLE", "%s is no image of a known format (JPEG, PNG, GIF, BMP, WebP)" % chosen.name, file_path=chosen.path, first_bytes=image.magic.hex())
            whole = look.Whole(file, info.st_size, image.end, told)
    except FileNotFoundError:
        raise tooling.Refused("ARTIFACT_NOT_FOUND", "there is no file %s" % chosen.path, file_path=chosen.path) from None
    except OSError as err:
        raise tooling.Refused("ARTIFACT_UNREADABLE", "%s cannot be read: %s" % (chosen.name, err.strerror or err), file_path=chosen.path) from None
    model = None
    llm = getattr(context, "llm_query", None) if payload.get("use_llm", True) and getattr(context, "llm_enabled", False) else None
    if llm is not None:
        model, note, blind = seen.ask(llm, chosen.path, info.st_size, image.format, payload.get("question"))
        if note and blind and payload.get("need_model", False):
            raise tooling.Refused("LLM_CAPABILITY_GAP", note)
        notes += [note] if note else []
    elif payload.get("need_model", False):
        raise tooling.Refused("LLM_UNAVAILABLE", "no model is connected that could look at the image; see `mortise models`")
    outputs = None
    if len(image.parts) > limit and tooling.can_register(context):
        path = tooling.new_file(context, NAME, chosen, "jsonl")
        count = tooling.write_lines(path, image.parts)
        outputs = [tooling.register(context, path, "json_events", NAME, {"source_artifact": chosen.artifact_id, "parts": count})]
    elif len(image.parts) > limit:
        notes.append("%d parts of the file are not listed." % (len(image.parts) - limit))
    tags: Dict[str, Any] = {}
    for exif in image.exif:
        for name, value in exif.tags.items():
            tags.setdefault(name, value)
    result = {
        "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name},
        "file": {"size": info.st_size, "sha256": whole.sha256, "sha1": whole.sha1, "md5": whole.md5},
        "image": {
            "format": image.format, "width": image.width, "height": image.height, "bits": image.depth, "colour": image.colour, "frames": image.frames,
            "progressive": image.progressive, "end": image.end,
        },
        "metadata": {"tags": tags, "position": next((e.gps for e in image.exif if e.gps), None), "texts": image.texts[:limit]},
        "parts": image.parts[:limit],
        "behind_the_end": {"offset": image.end, "size": whole.behind, "entropy": whole.entropy, "found": whole.found[:limit]} if whole.behind else None,
        "findings": look.findings(image, whole, chosen.name)[:limit],
        "model": model,
        "notes": notes,
    }  # fmt: skip
    return ToolResult(ok=True, result=result, output_artifacts=outputs)
