"""The files of a session, as one call sees them."""

from __future__ import annotations

import os

from mortise._session import error_message

from .context import ref_of
from .plain import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

    from framework.plugins.protocol import ArtifactRef
    from mortise._context import Context

    from .tools import Tool

MAX_OUTPUTS = 256  # entries of output_artifacts that are looked at
LARGE = 1 << 20  # from here on a file is linked rather than copied, where that works
_TEXTS = ("visualization", "content", "summary", "analysis", "report", "output")
_TYPES = ("json_events", "risk_model", "cloud_audit_log", "pcap", "log_stream", "pdf_report", "html_report", "image", "text")
# What tools say besides; for anything else the host looks at the file.
_SPELLINGS = {
    "csv": "text",
    "html": "html_report",
    "jpeg": "image",
    "jpg": "image",
    "json": "json_events",
    "log": "log_stream",
    "log_file": "log_stream",
    "markdown": "text",
    "pdf": "pdf_report",
    "png": "image",
}


class Artifacts:
    """The artifacts that were there when the call began, and those it registers."""

    def __init__(self, tool: Tool, ctx: Context, said: list[Any], workspace: str) -> None:
        self._tool = tool
        self._ctx = ctx
        self._workspace = workspace
        self._scratch = os.path.realpath(ctx.scratch)
        self._files: set[str] = set()  # real paths of what was registered
        self.refs: list[ArtifactRef] = [ref_of(one) for one in said if isinstance(one, dict)]
        self.registered: list[ArtifactRef] = []

    # For the payload.

    def complete(self, payload: dict[str, Any]) -> None:
        """Add the paths of the artifact that a payload names, and find files that are named as they were called elsewhere."""
        id = payload.get("artifact_id")
        named = next((ref for ref in self.refs if ref.artifact_id == id), None) if isinstance(id, str) else None
        if named is not None:
            payload.setdefault("file_path", named.file_path)
            payload.setdefault("path", named.file_path)
        for key, value in payload.items():
            if key.startswith("output"):
                continue
            if isinstance(value, str) and (key in ("file", "path") or key.endswith(("_path", "_file"))):
                payload[key] = self._find(value)
            elif isinstance(value, list) and key.endswith(("_paths", "_files")):
                payload[key] = [self._find(one) if isinstance(one, str) else one for one in value]

    def _find(self, path: str) -> str:
        """Return path, or where it does not exist the newest artifact of that name."""
        name = os.path.basename(path)
        if not name or "\0" in path or os.path.exists(path):
            return path
        for ref in reversed(self.refs):
            if os.path.basename(ref.file_path) == name:
                return ref.file_path
        return path

    # For the tool.

    def register_artifact(
        self,
        artifact_type: str | None = None,
        file_path: Any = "",
        source_tool: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ArtifactRef:
        """Hand a file to the session and return the reference to it. The bytes are taken as they are now."""
        path = os.path.abspath(os.fsdecode(file_path)) if file_path else ""
        if not path or not os.path.exists(path):
            raise FileNotFoundError(f"no such file to register as an artifact: {file_path!r}")
        if not os.path.isfile(path):
            raise ValueError(f"only a file can be registered as an artifact: {path}")
        args: dict[str, Any] = {"file_path": self._place(path), "source_tool": str(source_tool or self._tool.name)}
        kind = str(getattr(artifact_type, "value", artifact_type))
        kind = _SPELLINGS.get(kind, kind)
        if kind in _TYPES:
            args["artifact_type"] = kind
        if metadata:
            args["metadata"] = plain(dict(metadata), "/metadata")
        ref = ref_of(self._ctx.service("artifacts.register", args))
        self._files.add(os.path.realpath(path))
        self.registered.append(ref)
        self.refs.append(ref)
        return ref

    def _place(self, path: str) -> str:
        """Return the path by which the host finds a file: in the scratch directory, or among the artifacts. It ends as the given one."""
        real, name = os.path.realpath(path), os.path.basename(path)
        if os.path.basename(real) == name:
            if real.startswith(self._scratch + os.sep):
                return os.path.relpath(real, self._scratch).replace(os.sep, "/")
            view = self._ctx.artifacts_dir
            if view and real.startswith(os.path.realpath(view) + os.sep):
                return real
            if any(real == os.path.realpath(ref.file_path) for ref in self.refs):
                return real
        # A link of another name, or somewhere else that the tool can write: the host looks at neither.
        place = f"registered/{self._ctx._call[:8]}-{len(self.registered)}"
        directory = os.path.join(self._scratch, place)
        os.makedirs(directory, exist_ok=True)
        copy = os.path.join(directory, name)
        if os.path.lexists(copy):
            os.unlink(copy)
        if os.path.getsize(real) < LARGE or not _linked(real, copy):
            import shutil

            shutil.copyfile(real, copy)
        return f"{place}/{name}"

    # For what the tool returned.

    def take(self, outputs: Any, logger: Logger) -> None:
        """Register the files that output_artifacts lists and the tool did not register itself."""
        entries = outputs if isinstance(outputs, (list, tuple)) else [outputs] if isinstance(outputs, dict) else []
        if not entries:
            return
        known = {os.path.realpath(ref.file_path) for ref in self.refs}
        ids = {ref.artifact_id for ref in self.refs}
        for entry in entries[:MAX_OUTPUTS]:
            said = entry if isinstance(entry, dict) else {"file_path": entry} if isinstance(entry, str) else getattr(entry, "__dict__", {})
            path = said.get("file_path") or said.get("path")
            if said.get("artifact_id") in ids or not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
                continue
            if not os.path.isfile(path) or os.path.realpath(path) in self._files | known:
                continue
            kind = said.get("artifact_type") or said.get("type")
            metadata = said.get("metadata")
            try:
                self.register_artifact(kind, path, said.get("source_tool"), metadata if isinstance(metadata, dict) else None)
            except Exception as exc:
                logger.warning("output artifact %s was not registered: %s", path, error_message(exc))

    def save(self, result: Any, spelled: str) -> str:
        """Save a result as an artifact and return its id: its text if it has one, all of it as JSON, which is spelled, otherwise."""
        if not result:
            return ""
        text, ending, kind = _text_in(result), ".md", "text"
        if text is None:
            text, ending, kind = _indented(spelled), ".json", "json_events"
        path = os.path.join(self._workspace, "artifacts", f"{self._tool.name}_{self._ctx._call[:8]}{ending}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return self.register_artifact(kind, path, self._tool.name, {"saved_result": True}).artifact_id


def _linked(path: str, link: str) -> bool:
    try:
        os.link(path, link)
        return True
    except OSError:  # another file system, or not ours to link
        return False


def _text_in(result: Any) -> str | None:
    if not isinstance(result, dict):
        return result if isinstance(result, str) else None
    found = (result.get(name) for name in _TEXTS)
    return next((text for text in found if isinstance(text, str) and text.strip()), None)


def _indented(text: str) -> str:
    import json

    return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
