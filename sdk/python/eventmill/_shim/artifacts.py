"""The files of a session, as one call sees them."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from time import strftime

from framework.plugins.protocol import ArtifactRef
from mortise._context import cut
from mortise._errors import Cancelled
from mortise._session import error_message

from .answer import ARTIFACT_NOT_FOUND, Failure, clean
from .context import ref_of
from .plain import plain, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

    from mortise._context import Context

    from .tools import Tool

MAX_OUTPUTS = 256  # entries of output_artifacts, and files beneath a directory, that are looked at
MAX_PATH = 4096
MAX_LAID = 1000  # files of a directory
LARGE = 1 << 20  # from here on a file is linked rather than copied, where that works
_TEXTS = ("visualization", "content", "summary", "analysis", "report", "output")
_TYPES = ("json_events", "risk_model", "cloud_audit_log", "pcap", "log_stream", "pdf_report", "html_report", "image", "text")
_DATA = ("json_events", "risk_model", "cloud_audit_log")  # that JSON can be
_INPUTS = ("file", "files", "path", "paths")  # last words of arguments that name files
_DIRECTORIES = ("dir", "dirs", "directory", "folder")
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

_pid = os.getpid()


class Artifacts:
    """The artifacts that were there when the call began, and those it registers."""

    def __init__(self, tool: Tool, ctx: Context, said: list[Any], workspace: str, session: str = "") -> None:
        self.tool = tool
        self.session = session
        self._ctx = ctx
        self._workspace = workspace
        self._scratch = os.path.realpath(ctx.scratch)
        self._handed = 0  # files that the host keeps
        self._due: list[tuple[ArtifactRef, Any, str, str, Any]] = []  # registered: the reference, type, path, a link to the file, metadata
        self._watched: list[tuple[str, str, str, Any]] = []  # argument, as it was given, path, what was there before
        self._exports: list[tuple[str, str, Any]] = []  # argument, path, what was there before
        self.refs: list[ArtifactRef] = [ref_of(one) for one in said if isinstance(one, dict)]
        self._laid: dict[str, str] = {}  # directories: where their listing is, and where they are
        self._lay_out()
        self._given = len(self.refs)
        self._known: set[str] = set()  # their paths, once they are asked for
        self._ids: set[str] = set()  # that are taken, once one is given out
        self.registered: list[ArtifactRef] = []  # by the tool, or for it

    def _lay_out(self) -> None:
        """Show each artifact that lists the files of a directory as that directory, of links to those files."""
        by_id = {ref.artifact_id: ref.file_path for ref in self.refs}
        for at, ref in enumerate(self.refs):
            if ref.metadata.get("directory") is not True:
                continue
            root = os.path.join(self._scratch, "directories", ref.artifact_id, os.path.basename(ref.file_path))
            try:
                with open(ref.file_path, "rb") as listing:
                    files = json.load(listing)["files"]
                for file in files[:MAX_LAID]:
                    _link(by_id[file["artifact_id"]], root, file["path"])
                os.makedirs(root, exist_ok=True)
            except (OSError, ValueError, KeyError, TypeError):
                continue  # it is what it is: a text
            self._laid[ref.file_path] = root
            metadata = {name: value for name, value in ref.metadata.items() if name != "directory"}
            self.refs[at] = ArtifactRef(ref.artifact_id, ref.artifact_type, root, ref.storage_uri, ref.source_tool, metadata)

    # For the payload.

    def complete(self, payload: dict[str, Any]) -> None:
        """Add the paths of the artifact that a payload names, and find files that are named as they were called elsewhere."""
        id = payload.get("artifact_id")
        named = next((ref for ref in self.refs if ref.artifact_id == id), None) if isinstance(id, str) else None
        if named is not None:
            payload.setdefault("file_path", named.file_path)
            payload.setdefault("path", named.file_path)
        payload.update({key: self._completed(key, value) for key, value in payload.items() if not key.startswith("output")})

    def _completed(self, key: str, value: Any) -> Any:
        """Return a member of the payload with the files found that it names, in lists and objects too."""
        if _names_output(key):
            return value
        if isinstance(value, str):
            return self._find(value) if _words(key)[-1] in _INPUTS else value
        if isinstance(value, list):
            return [self._completed(key, one) for one in value]
        if isinstance(value, dict):
            return {name: self._completed(name, one) for name, one in value.items()}
        return value

    def _find(self, path: str) -> str:
        """Return path, or where it does not exist the artifact of that name; raises Failure where several have it."""
        path = self._laid.get(path, path)
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
        """Give each argument that names a file to write a place where the tool can write it.

        An artifact of the session that it names is what is there before: the tool may append to a copy of it.
        """
        for key, value in payload.items():
            if not isinstance(value, str) or not _names_output(key) or "\0" in value or not os.path.basename(value):
                continue
            path = os.path.abspath(value)
            there = next((ref.file_path for ref in self.refs if ref.file_path == value), None)
            if not os.path.realpath(path).startswith(self._scratch + os.sep):
                path = os.path.join(os.getcwd(), "exports", self._ctx._call[:8], f"{len(self._exports)}", os.path.basename(value))
                payload[key] = path
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if there is not None:
                _copied(there, path)
            self._exports.append((key, path, _state(path)))
        self._watch("", payload, {key for key, _, _ in self._exports})

    def _watch(self, key: str, value: Any, but: set[str]) -> None:
        """Note what is at the paths that a payload names relative to the working directory."""
        if isinstance(value, dict):
            for name, one in value.items():
                if name not in but:
                    self._watch(str(name), one, set())
        elif isinstance(value, list):
            for one in value:
                self._watch(key, one, but)
        elif isinstance(value, str) and value and "\0" not in value and len(value) < MAX_PATH and len(self._watched) < MAX_OUTPUTS:
            named = _names_output(key) or _words(key)[-1] in (*_INPUTS, *_DIRECTORIES)
            if named and not os.path.isabs(value):
                path = os.path.abspath(value)
                self._watched.append((key, value, path, _within(path)))

    def export(self, logger: Logger) -> None:
        """Register the files that the tool wrote where an argument said. The caller that gave the argument may then read them there."""
        for key, path, before in self._exports:
            if os.path.isdir(path):
                self._tell(logger, key, os.path.basename(path), path, {})
            elif os.path.isfile(path) and _state(path) != before:
                self._handed_for(logger, key, path, {"exported_as": key})
        for key, given, path, had in self._watched:
            self._tell(logger, key, given, path, had)

    def _tell(self, logger: Logger, key: str, given: str, path: str, had: dict[str, Any]) -> None:
        """Register what the tool wrote where nothing is exported to, and say so."""
        mine = {os.path.realpath(ref.file_path) for ref in self.registered}
        changed = [one for one, state in _within(path).items() if had.get(one) != state and os.path.realpath(one) not in mine]
        kept = [(one, self._handed_for(logger, key, one, None)) for one in changed]
        ids = [(one, ref.artifact_id) for one, ref in kept if ref is not None]
        if ids and os.path.isdir(path):
            listed = ", ".join(f"{os.path.relpath(one, path)} is {id}" for one, id in ids[:20])
            logger.warning("%s: %s is a directory, and a tool writes it in its scratch directory alone; its files are artifacts: %s", key, given, listed)
        elif ids:
            message = "%s: the tool wrote %s in its scratch directory alone; it is artifact %s, which 'mortise artifacts get %s --session %s -o FILE' writes"
            logger.warning(message, key, given, ids[0][1], ids[0][1], self.session)

    def _handed_for(self, logger: Logger, key: str, path: str, metadata: Any) -> ArtifactRef | None:
        try:
            return self._hand(path, None, self.tool.name, metadata)
        except Exception as exc:
            logger.warning("%s: %s was not registered: %s", key, os.path.basename(path), error_message(exc))
            return None

    # For the tool.

    def register_artifact(
        self,
        artifact_type: str | None = None,
        file_path: Any = "",
        source_tool: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ArtifactRef:
        """Promise a file to the session and return the reference to it, which says of it what the tool does.

        The file is handed over when the tool has ended: as it is then, or as it was here where it is gone by then.
        """
        source = str(source_tool or self.tool.name)
        told = os.fsdecode(file_path) if file_path else ""
        path = os.path.abspath(told) if told else ""
        kind = getattr(artifact_type, "value", artifact_type)
        kind = kind if isinstance(kind, str) else "text"
        own = plain(dict(metadata), "/metadata") if metadata else None
        late = not self._ctx._open or os.getpid() != _pid
        if late or (own is None and path and self._has(path)):  # what a session has does not change
            ref = ArtifactRef(self._hand(path, artifact_type, source, own).artifact_id, kind, told, None, source, dict(metadata or {}))
        else:
            ref = ArtifactRef(self._fresh(), kind, told, None, source, dict(metadata or {}))
            self._due.append((ref, artifact_type, path, self._hold(path), own))
        self.registered.append(ref)
        return ref

    def _has(self, path: str) -> bool:
        """Report whether a path is that of an artifact which was there when the call began."""
        if not self._known:
            self._known = {os.path.realpath(ref.file_path) for ref in self.refs[: self._given]}
        return os.path.realpath(path) in self._known

    def _fresh(self) -> str:
        """Return an id that no artifact has; a call that is carried out again gives the same ones."""
        if not self._ids:
            self._ids = {ref.artifact_id for ref in self.refs}
        n = len(self._due)
        while True:
            id = "art_" + sha256(f"{self._ctx._call} {n}".encode()).hexdigest()[:8]
            if id not in self._ids:
                self._ids.add(id)
                return id
            n += 1 << 20

    def _hold(self, path: str) -> str:
        """Return a copy of a file, or a link to a large one, that stays when the file is deleted."""
        if not os.path.isfile(path):
            return ""
        directory = os.path.join(self._scratch, f"registered/{self._ctx._call[:8]}-held-{len(self._due)}")
        held = os.path.join(directory, os.path.basename(path))
        os.makedirs(directory, exist_ok=True)
        if os.path.lexists(held):
            os.unlink(held)
        if os.path.getsize(path) < LARGE or not _linked(os.path.realpath(path), held):
            _copied(path, held)
        return held

    def settle(self, logger: Logger, strict: bool) -> None:
        """Hand over what the tool registered; raises the first error if strict, and logs it otherwise."""
        due, self._due = self._due, []
        first: Exception | None = None
        for ref, kind, path, held, metadata in due:
            try:
                if os.path.isfile(path) or held:
                    self._hand(path if os.path.isfile(path) else held, kind, str(ref.source_tool), metadata, ref.artifact_id)
                    continue
                why = "; it is a directory, of which the files can be registered" if os.path.isdir(path) else ""
                logger.warning("%r was registered as an artifact and is no file: nothing was kept%s", ref.file_path, why)
            except Cancelled:
                raise
            except Exception as exc:
                first = first or exc
                if not strict:
                    logger.warning("%r was not registered: %s", ref.file_path, error_message(exc))
            finally:
                if held and os.path.lexists(held):
                    os.unlink(held)
        if strict and first is not None:
            raise first

    def _hand(self, path: str, artifact_type: Any, source: str, metadata: Any, id: str = "") -> ArtifactRef:
        """Have the host keep a file and return its reference to it."""
        path = os.path.abspath(path)
        args: dict[str, Any] = {"file_path": self._place(path), "source_tool": source}
        kind = str(getattr(artifact_type, "value", artifact_type))
        kind = _SPELLINGS.get(kind, kind)
        if kind in _TYPES:
            args["artifact_type"] = kind
        if id:
            args["artifact_id"] = id
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
        """Save a result as an artifact and return its id.

        It is of the first type that the tool produces. As text it is what the result says in words and, beneath, the rest of
        it; of any other type that JSON can be it is all of the result, which is spelled.
        """
        if result is None:
            return ""
        name, text = _text_in(result)
        rest = {key: one for key, one in result.items() if key != name} if isinstance(result, dict) else None
        produced = self.tool.manifest.get("artifacts_produced")
        kind = produced[0] if isinstance(produced, list) and produced else ""
        kind = _SPELLINGS.get(kind, kind) if isinstance(kind, str) else ""
        if kind not in ("text", *_DATA):
            kind = "text" if text is not None and not rest else "json_events"
        if text is None or kind in _DATA:
            text, ending = _indented(spelled), ".json"
        else:
            ending = ".md"
            if rest:
                text += "\n\n```json\n" + _indented(text_of(rest, "/result")) + "```\n"
        path = os.path.join(self._workspace, "artifacts", f"{self.tool.name}_{strftime('%Y%m%d_%H%M%S')}{ending}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return self._hand(path, kind, self.tool.name, {"auto_persisted": True}).artifact_id


def _names_output(key: str) -> bool:
    """Report whether an argument is called like one that names a file to write: output_path, export_file, save_to."""
    words = _words(key)
    if words[-1] == "to" and words[0] in _OUTPUTS:
        return True
    return words[-1] in ("path", "file", "filename") and any(word in _OUTPUTS for word in words[:-1])


def _words(key: str) -> list[str]:
    return key.lower().replace("-", "_").split("_")


def _within(path: str) -> dict[str, tuple[int, ...]]:
    """Return the states of the file at a path, or of the files beneath it, as far as they are looked at."""
    if os.path.isfile(path):
        return {path: _state(path)}
    found: dict[str, tuple[int, ...]] = {}
    for directory, _, names in os.walk(path):
        for name in sorted(names):
            if len(found) >= MAX_OUTPUTS:
                return found
            one = os.path.join(directory, name)
            if os.path.isfile(one):
                found[one] = _state(one)
    return found


def _copied(path: str, copy: str) -> None:
    """Copy a file. The copy has a time of whole seconds, so that what is written to it next gives it another."""
    import shutil

    shutil.copyfile(path, copy)
    seconds = int(os.stat(path).st_mtime)
    os.utime(copy, (seconds, seconds))


def _state(path: str) -> tuple[int, ...]:
    """Return what tells a file from the one that was there before."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _link(path: str, root: str, inside: str) -> None:
    """Show a file beneath a directory; raises ValueError for a name that leads out of it."""
    if not inside or "\0" in inside or os.path.isabs(inside) or ".." in inside.split("/"):
        raise ValueError(inside)
    link = os.path.join(root, inside)
    os.makedirs(os.path.dirname(link), exist_ok=True)
    if not os.path.lexists(link):
        os.symlink(path, link)


def _linked(path: str, link: str) -> bool:
    try:
        os.link(path, link)
        return True
    except OSError:  # another file system, or not ours to link
        return False


def _text_in(result: Any) -> tuple[str, str | None]:
    """Return what a result says in words, and the member that has it."""
    if not isinstance(result, dict):
        return "", result if isinstance(result, str) else None
    found = ((name, result.get(name)) for name in _TEXTS)
    return next(((name, text) for name, text in found if isinstance(text, str) and text.strip()), ("", None))


def _indented(text: str) -> str:
    import json

    return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
