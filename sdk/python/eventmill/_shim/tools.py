"""The tools of a package: found by their manifests, loaded when first called."""

from __future__ import annotations

import gc
import os
import sys

from mortise._start import prefer_fork
from mortise._wire import loads

from .answer import INTERNAL_ERROR, Failure
from .tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

MAX_MANIFEST = 1 << 20
MAX_DIRECTORIES = 10_000  # looked at in one scan
MAX_UNREAD = 20  # manifests that are told of where a tool is not found
_SKIPPED = (".git", ".venv", ".pytest_cache", ".mypy_cache")


class Tool:
    """One tool: its directory, its manifest and, once loaded, the one instance of its class."""

    def __init__(self, name: str, directory: str, place: tuple[str, ...], manifest: dict[str, Any]) -> None:
        self.name = name
        self.directory = directory
        self.place = place  # (pillar, directory) below `plugins`
        self.manifest = manifest
        self.module: ModuleType | None = None
        self.instance: Any = None

    @property
    def needs_model(self) -> bool:
        return self.manifest.get("requires_llm") is True

    @property
    def entry(self) -> str:
        """The path of the entry point inside the directory."""
        entry = str(self.manifest.get("entry_point") or "tool.py")
        return entry if entry.endswith(".py") else entry + ".py"


class Tools:
    """What stands under one directory: a tree <pillar>/<directory>/, or a single tool."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._tree = Tree(root)
        self._known: dict[str, Tool] = {}
        self._unread: list[str] = []  # what is wrong with manifests of the last scan

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name, None if there is none; on a miss the directories are read again."""
        if name not in self._known:
            self._scan()
            if name not in self._known:  # one of these may be it; those of neighbours were told at registration
                for problem in self._unread:
                    print(f"eventmill: {problem}", file=sys.stderr)
        return self._known.get(name)

    def _scan(self) -> None:
        self._found: dict[str, Tool] = {}
        self._unread = []
        single = self._manifest(self.root)
        if single is not None:
            place = (str(single.get("pillar") or "log_analysis"), str(single.get("tool_name")))
            self._tree.single = place
            self._add(self.root, place, single)
        for pillar in _directories(self.root):
            for name in _directories(os.path.join(self.root, pillar)):
                directory = os.path.join(self.root, pillar, name)
                manifest = self._manifest(directory)
                if manifest is not None:
                    self._add(directory, (pillar, name), manifest)
        for name, tool in self._found.items():
            self._known.setdefault(name, tool)  # what was loaded stays

    def _manifest(self, directory: str) -> dict[str, Any] | None:
        path = os.path.join(directory, "manifest.json")
        try:
            return read_manifest(path)
        except (OSError, ValueError, RecursionError) as exc:
            if len(self._unread) < MAX_UNREAD:
                self._unread.append(f"{path} is passed over: {exc}")
            return None

    def _add(self, directory: str, place: tuple[str, ...], manifest: dict[str, Any]) -> None:
        name = manifest.get("tool_name")
        if isinstance(name, str):
            self._found[name] = Tool(name, directory, place, manifest)  # of two with one name the last wins

    def instance(self, tool: Tool) -> Any:
        """Return the instance of the tool's class, made on first use; raises whatever its code raises."""
        if tool.instance is None:
            tool.instance = self.tool_class(tool)()
            gc.freeze()  # what is loaded stays: it need not be looked through while tools work
        return tool.instance

    def tool_class(self, tool: Tool) -> Any:
        """Return the class that the manifest names."""
        module = self.module(tool)
        name = str(tool.manifest.get("class_name") or "")
        found = getattr(module, name, None) if name else None
        if isinstance(found, type):
            return found
        own = [n for n, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__]
        message = f"{tool.name}: {tool.entry} has no class {name!r}, which manifest.json names; it has {', '.join(own[:20]) or 'none'}"
        raise Failure(INTERNAL_ERROR, message, {"class_name": name})

    def module(self, tool: Tool) -> ModuleType:
        """Return the module of the tool's entry point, loaded on first use."""
        if tool.module is None:
            path = os.path.normpath(os.path.join(tool.directory, tool.entry))
            if not path.startswith(tool.directory + os.sep):
                raise Failure(INTERNAL_ERROR, f"{tool.name}: entry_point {tool.entry!r} is not inside the tool's directory")
            if not os.path.isfile(path):
                raise Failure(INTERNAL_ERROR, f"{tool.name}: entry_point {tool.entry!r} is not there")
            tool.module = self._tree.load(tool.place, path, tool.directory)
            prefer_fork()
        return tool.module


def read_manifest(path: str) -> dict[str, Any] | None:
    """Return a manifest that names a tool, None where there is none; raises OSError, ValueError and RecursionError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_MANIFEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(data) > MAX_MANIFEST:
        raise ValueError(f"larger than {MAX_MANIFEST} bytes")
    manifest = loads(data[3:] if data.startswith(b"\xef\xbb\xbf") else data)
    return manifest if "tool_name" in manifest else None


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
    return sorted(name for name in names if name[0] != "_" and name not in _SKIPPED)[:MAX_DIRECTORIES]
