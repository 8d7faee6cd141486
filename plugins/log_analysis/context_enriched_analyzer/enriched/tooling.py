"""What a tool does around its work: hold its input against the schema, find its
file, leave a file behind. Errors are those of the contract."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence

_TYPES: Dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}


class Refused(Exception):
    """A request that cannot be served, with the contract's error code."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class Chosen(NamedTuple):
    """The file to work on."""

    path: str
    name: str
    artifact_id: Optional[str]
    artifact_type: Optional[str]
    ref: Any  # the context's own reference, None for a path


def load_json(*parts: str) -> Any:
    """The JSON file at the joined path."""
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return json.load(file)


def check(value: Any, schema: Dict[str, Any], at: str = "") -> List[str]:
    """What is wrong with a value by the parts of JSON Schema that the input schemas use."""
    where = at or "the request"
    errors: List[str] = []
    wanted = schema.get("type")
    if wanted is not None:
        names = wanted if isinstance(wanted, list) else [wanted]
        right = any(isinstance(value, _TYPES[n]) and (n in ("boolean",) or not isinstance(value, bool) or n not in ("integer", "number")) for n in names)
        if not right:
            return ["%s must be of type %s" % (where, " or ".join(names))]
    if "enum" in schema and value not in schema["enum"]:
        errors.append("%s must be one of %s" % (where, ", ".join(json.dumps(v) for v in schema["enum"])))
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            errors.append("%s must not be empty" % where)
        if len(value) > schema.get("maxLength", len(value)):
            errors.append("%s must have at most %d characters" % (where, schema["maxLength"]))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            errors.append("%s must be at least %s" % (where, schema["minimum"]))
        if "maximum" in schema and value > schema["maximum"]:
            errors.append("%s must be at most %s" % (where, schema["maximum"]))
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            errors.append("%s must have at most %d items" % (where, schema["maxItems"]))
        for i, item in enumerate(value[:100]):
            errors += check(item, schema.get("items", {}), "%s[%d]" % (at, i))
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        errors += ["%s is required" % name for name in schema.get("required", []) if name not in value]
        for name in sorted(value, key=str):
            inner = "%s.%s" % (at, name) if at else str(name)
            if name in known:
                errors += check(value[name], known[name], inner)
            elif schema.get("additionalProperties") is False:
                errors.append("%s is not known; known are %s" % (inner, ", ".join(known)))
    return errors


def as_written(payload: Any, schema: Dict[str, Any]) -> Any:
    """The payload with numbers and booleans made of the text that a command line gives for them."""
    if not isinstance(payload, dict):
        return payload
    known = schema.get("properties", {})
    return {name: _converted(value, known.get(name, {}).get("type")) for name, value in payload.items()}


def _converted(value: Any, wanted: Any) -> Any:
    if not isinstance(value, str):
        return value
    if wanted == "integer" and re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    if wanted == "number" and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", value):
        return float(value)
    if wanted == "boolean" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if wanted == "array":
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def choose(payload: Dict[str, Any], context: Any, fitting: Sequence[str]) -> Chosen:
    """The file that is meant: artifact_id, else file_path, else the session's first artifact of a fitting type."""
    artifacts = list(getattr(context, "artifacts", None) or [])
    wanted = payload.get("artifact_id")
    path = payload.get("file_path") or payload.get("path")
    if wanted:
        for ref in artifacts:
            if ref.artifact_id == wanted:
                return _of(ref)
        raise Refused(
            "ARTIFACT_NOT_FOUND",
            "there is no artifact %s here; there %s" % (wanted, _listing(artifacts)),
            artifact_id=wanted,
        )
    if path:
        for ref in artifacts:
            if ref.file_path == path:
                return _of(ref)
        if not os.path.exists(path):  # a name alone means the artifact that has it
            for ref in artifacts:
                if os.path.basename(ref.file_path) == os.path.basename(path):
                    return _of(ref)
            raise Refused("ARTIFACT_NOT_FOUND", "there is no file %s, and no artifact of that name" % path, file_path=path)
        return Chosen(path, os.path.basename(path), None, None, None)
    for kind in fitting:
        for ref in artifacts:
            if ref.artifact_type == kind:
                return _of(ref)
    raise Refused(
        "ARTIFACT_NOT_FOUND",
        "no artifact_id or file_path is given and no artifact is one of %s; there %s" % (", ".join(fitting), _listing(artifacts)),
    )


def _of(ref: Any) -> Chosen:
    return Chosen(ref.file_path, os.path.basename(ref.file_path), ref.artifact_id, ref.artifact_type, ref)


def _listing(artifacts: Sequence[Any]) -> str:
    if not artifacts:
        return "are none"
    shown = ", ".join("%s (%s)" % (a.artifact_id, a.artifact_type) for a in artifacts[:10])
    return "are " + shown + (" and %d more" % (len(artifacts) - 10) if len(artifacts) > 10 else "")


def can_register(context: Any) -> bool:
    """Whether the host keeps files for the tool: it does so within a session."""
    return callable(getattr(context, "register_artifact", None)) and getattr(context, "session_id", None) != ""


def new_file(context: Any, tool: str, chosen: Chosen, ending: str) -> str:
    """A path in the workspace for a file that tool makes out of the chosen one; its directory is there."""
    config = getattr(context, "config", None) or {}
    base = os.environ.get("EVENTMILL_WORKSPACE") or str(config.get("workspace_dir", "workspace"))
    directory = os.path.join(base, "artifacts")
    os.makedirs(directory, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9_.-]", "_", chosen.artifact_id or chosen.name)[:80]
    return os.path.join(directory, "%s_%s.%s" % (tool, stem, ending))


def register(context: Any, path: str, artifact_type: str, tool: str, metadata: Dict[str, Any]) -> Dict[str, Any]:
    """Hand a file to the host; what output_artifacts says of it."""
    ref = context.register_artifact(artifact_type=artifact_type, file_path=path, source_tool=tool, metadata=metadata)
    return {"artifact_id": ref.artifact_id, "artifact_type": artifact_type, "file_path": path}


def tell(context: Any, message: str, done: int, total: int, unit: str = "bytes") -> None:
    """Say how far the work is, to a host that listens: it gives its context a member progress."""
    report = getattr(context, "progress", None)
    if callable(report):
        report(message, done, total, unit)


def write_lines(path: str, lines: Iterable[Dict[str, Any]]) -> int:
    """Write one JSON object a line; how many there were."""
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n")
            count += 1
    return count


def member(result: Any, name: str) -> Any:
    """A member of a result, be it an object or its JSON form."""
    return result.get(name) if isinstance(result, dict) else getattr(result, name, None)


def shorten(text: str, limit: int) -> str:
    """Text of at most limit characters, cut at its end."""
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
