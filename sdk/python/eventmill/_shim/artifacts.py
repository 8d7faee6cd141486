"""The files of a session, as one call sees them."""

from __future__ import annotations

import logging
import os
from time import strftime

from framework.plugins.protocol import ArtifactRef
from mortise._context import cut
from mortise._session import error_message

from .answer import ARTIFACT_NOT_FOUND, Failure, clean
from .context import ref_of
from .plain import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

    from mortise._context import Context

    from .tools import Tool

MAX_OUTPUTS = 256  # entries of output_artifacts that are looked at
LARGE = 1 << 20  # from here on a file is linked rather than copied, where that works
_TEXTS = ("visualization", "content", "summary", "analysis", "report", "output")
_TYPES = ("json_events", "risk_model", "cloud_audit_log", "pcap", "log_stream", "pdf_report", "html_report", "image", "text")
_OUTPUTS = ("output", "out", "export", "save", "dest", "destination", "write")  # words of arguments that name a file to write
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
        self.tool = tool
        self._ctx = ctx
        self._workspace = workspace
        self._scratch = os.path.realpath(ctx.scratch)
        self._handed = 0  # files that the host keeps
        self._unkept = 0
        self._exports: list[tuple[str, str, Any]] = []  # argument, path, what was there before
        self.refs: list[ArtifactRef] = [ref_of(one) for one in said if isinstance(one, dict)]
        self._given = len(self.refs)
        self.registered: list[ArtifactRef] = []  # by the tool, or for it

    # For the payload.

    def complete(self, payload: dict[str, Any]) -> None:
        """Add the paths of the artifact that a payload names, and find files that are named as they were called elsewhere."""
        id = payload.get("artifact_id")
        named = next((ref for ref in self.refs if ref.artifact_id == id), None) if isinstance(id, str) else None
        if named is not None:
            payload.setdefault("file_path", named.file_path)
            payload.setdefault("path", named.file_path)
        for key, value in payload.items():
            if key.startswith("output") or _names_output(key):
                continue
            if isinstance(value, str) and (key in ("file", "path") or key.endswith(("_path", "_file"))):
                payload[key] = self._find(value)
            elif isinstance(value, list) and key.endswith(("_paths", "_files")):
                payload[key] = [self._find(one) if isinstance(one, str) else one for one in value]

    def _find(self, path: str) -> str:
        """Return path, or where it does not exist the artifact of that name; raises Failure where several have it."""
        name = os.path.basename(path)
        if not name or "\0" in path or os.path.exists(path):
            return path
        found = [ref for ref in self.refs if os.path.basename(ref.file_path) == name]
        if len(found) > 1:
            shown = clean(cut(name, 100))
            ids = ", ".join(ref.artifact_id for ref in found[:10])
            raise Failure(ARTIFACT_NOT_FOUND, f"{self.tool.name}: several artifacts of this session are called {shown} ({ids}); name one with --artifact", {"artifact_ids": [ref.artifact_id for ref in found[:10]]})
        return found[0].file_path if found else path

    def check(self, payload: dict[str, Any]) -> None:
        """Refuse an artifact that the session does not have; raises Failure."""
        id = payload.get("artifact_id")
        if isinstance(id, str) and id and all(ref.artifact_id != id for ref in self.refs):
            shown = clean(cut(id, 100))
            message = f"{self.tool.name}: there is no artifact {shown} in this session; `mortise artifacts list` shows those there are"
            raise Failure(ARTIFACT_NOT_FOUND, message, {"artifact_id": shown})

    def exporting(self, payload: dict[str, Any]) -> None:
        """Give each argument that names a file to write a place where the tool can write it."""
        for key, value in payload.items():
            if not isinstance(value, str) or not _names_output(key) or "\0" in value or not os.path.basename(value):
                continue
            path = os.path.abspath(value)
            if not os.path.realpath(path).startswith(self._scratch + os.sep):
                path = os.path.join(os.getcwd(), "exports", self._ctx._call[:8], f"{len(self._exports)}", os.path.basename(value))
                payload[key] = path
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._exports.append((key, path, _state(path)))

    def export(self, logger: Logger) -> None:
        """Register the files that the tool wrote where an argument said. Whoever gave the argument may then have them there."""
        for key, path, before in self._exports:
            if not os.path.isfile(path) or _state(path) == before:
                continue
            try:
                self._hand(path, None, self.tool.name, {"exported_as": key})
            except Exception as exc:
                logger.warning("%s: %s was not registered: %s", key, os.path.basename(path), error_message(exc))

    # For the tool.

    def register_artifact(
        self,
        artifact_type: str | None = None,
        file_path: Any = "",
        source_tool: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ArtifactRef:
        """Hand a file to the session and return the reference to it, which says of it what the tool does.

        The bytes are taken as they are now. What is no file is kept by nothing but the reference, and the log says so.
        """
        path = os.path.abspath(os.fsdecode(file_path)) if file_path else ""
        source = str(source_tool or self.tool.name)
        if os.path.isfile(path):
            id = self._hand(path, artifact_type, source, metadata).artifact_id
        else:
            logging.getLogger(f"eventmill.plugin.{self.tool.name}").warning("%r was registered as an artifact and is no file: nothing was kept", file_path)
            self._unkept += 1
            id = f"art_{self._ctx._call[:4]}{self._unkept:04x}"
        kind = getattr(artifact_type, "value", artifact_type)
        told = kind if isinstance(kind, str) else "text"
        path = os.fsdecode(file_path) if file_path else ""
        ref = ArtifactRef(id, told, path, None, source, dict(metadata or {}))
        self.registered.append(ref)
        return ref

    def _hand(self, path: str, artifact_type: Any, source: str, metadata: Any) -> ArtifactRef:
        """Have the host keep a file and return its reference to it."""
        path = os.path.abspath(path)
        args: dict[str, Any] = {"file_path": self._place(path), "source_tool": source}
        kind = str(getattr(artifact_type, "value", artifact_type))
        kind = _SPELLINGS.get(kind, kind)
        if kind in _TYPES:
            args["artifact_type"] = kind
        if metadata:
            args["metadata"] = plain(dict(metadata), "/metadata")
        ref = ref_of(self._ctx.service("artifacts.register", args))
        self._handed += 1
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
        place = f"registered/{self._ctx._call[:8]}-{self._handed}"
        directory = os.path.join(self._scratch, place)
        os.makedirs(directory, exist_ok=True)
        copy = os.path.join(directory, name)
        if os.path.lexists(copy):
            os.unlink(copy)
        if os.path.getsize(real) < LARGE or not _linked(real, copy):
            import shutil

            shutil.copyfile(real, copy)
        return f"{place}/{name}"

    def document(self, path: str) -> tuple[str, str]:
        """Return how the host finds a file: as an artifact that was there when the call began, by its id, or in the scratch directory.

        Raises OSError where it cannot be opened.
        """
        with open(path, "rb"):
            real = os.path.realpath(path)
        for ref in self.refs[: self._given]:
            if real == os.path.realpath(ref.file_path):
                return ref.artifact_id, ""
        return "", self._place(path)

    # For what the tool returned.

    def take(self, outputs: Any, logger: Logger) -> None:
        """Register the files that output_artifacts of a good result lists, those too that the tool registered itself."""
        entries = outputs if isinstance(outputs, (list, tuple)) else [outputs] if isinstance(outputs, dict) else []
        for entry in entries[:MAX_OUTPUTS]:
            said = entry if isinstance(entry, dict) else {"file_path": entry} if isinstance(entry, str) else getattr(entry, "__dict__", {})
            path = said.get("file_path") or said.get("path")
            if not isinstance(path, (str, os.PathLike)) or "\0" in str(path) or not os.path.isfile(path):
                continue
            own = said.get("artifact_id")
            try:
                kind = said.get("artifact_type") or said.get("type") or "text"
                self.registered.append(self._hand(os.fspath(path), kind, self.tool.name, {"plugin_artifact_id": str(own)} if own else None))
            except Exception as exc:
                logger.warning("output artifact %s was not registered: %s", path, error_message(exc))

    def save(self, result: Any, spelled: str) -> str:
        """Save a result as an artifact and return its id: its text if it has one, all of it as JSON, which is spelled, otherwise."""
        if result is None:
            return ""
        text, ending = _text_in(result), ".md"
        if text is None:
            text, ending = _indented(spelled), ".json"
        produced = self.tool.manifest.get("artifacts_produced")
        kind = produced[0] if isinstance(produced, list) and produced else ""
        if not isinstance(kind, str) or kind in ("", "none"):
            kind = "json_events"
        path = os.path.join(self._workspace, "artifacts", f"{self.tool.name}_{strftime('%Y%m%d_%H%M%S')}{ending}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return self._hand(path, kind, self.tool.name, {"auto_persisted": True}).artifact_id


def _names_output(key: str) -> bool:
    """Report whether an argument is called like one that names a file to write: output_path, export_file, save_to."""
    words = key.lower().replace("-", "_").split("_")
    if words[-1] == "to" and words[0] in _OUTPUTS:
        return True
    return words[-1] in ("path", "file", "filename") and any(word in _OUTPUTS for word in words[:-1])


def _state(path: str) -> tuple[int, ...]:
    """Return what tells a file from the one that was there before."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


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
