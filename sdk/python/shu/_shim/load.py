"""The plugin's package on the path, and its class; the former in processes it spawns too.

A module "plugins.gmail.plugin" whose file is plugin.py at the top of the package
makes the package answer to `plugins.gmail`, whatever its directory is called;
`plugins` itself is a namespace package. For "gmail_digest.plugin" in
gmail_digest/plugin.py the package's directory is on the path. vendor/ comes
before everything.
"""

from __future__ import annotations

import os
import sys

from mortise import _start

from . import guard
from .about import About

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_importing = sys.modules["_frozen_importlib"]
_files = sys.modules["_frozen_importlib_external"]


class NotAPlugin(Exception):
    """The module is there and has no such class."""


_ROOT, _ABOUT = "SHU_PACKAGE", "SHU_ABOUT"


def package(root: str, about: str) -> Package:
    """Return the plugin in a directory, of which about tells, and note both for what it spawns; raises NotAPlugin and ValueError."""
    os.environ[_ROOT], os.environ[_ABOUT] = root, about
    return Package(root, About(about))


def join() -> None:
    """Make the package importable in a process that multiprocessing has spawned for the plugin, under the same rules."""
    _start.join()
    Package(os.environ[_ROOT], About(os.environ[_ABOUT])).open()


class Package:
    """One plugin's files. The class is loaded with the first call."""

    def __init__(self, root: str, about: About) -> None:
        self.root = root
        self.about = about
        self.parents, self.module = names(about.module, about.entry, root)
        self._class: Any = None
        self._guarded = False
        self._opened = False

    def instance(self) -> Any:
        """Return a new instance: what one call leaves on it is not the next caller's. Raises what the code raises."""
        if self._class is None:
            self._class = self._load()
        return self._class()

    def _load(self) -> Any:
        self.open()
        __import__(self.module)
        _start.prefer_fork()
        found = getattr(sys.modules[self.module], self.about.class_name, None)
        if not callable(found):
            raise NotAPlugin(f"{self.about.entry} has no class {self.about.class_name}")
        return found

    def open(self) -> None:
        """Make the package importable under its names, with the guard before; raises what its __init__.py raises."""
        if not self._guarded:
            self._guarded = True
            guard.install(self.root)
        if not self._opened:
            self._opened = True
            own = [] if self.parents else [self.root]
            vendor = os.path.join(self.root, "vendor")
            sys.path[:0] = [vendor, *own] if os.path.isdir(vendor) else own
        for name in self.parents:
            if name not in sys.modules:
                _package(name, self.root if name == self.parents[-1] else "")


def names(module: str, entry: str, root: str) -> tuple[list[str], str]:
    """Return the packages that the root stands for, outermost first, and the module's name.

    What the name has beyond the file's path is the root.
    """
    steps = entry[: -len(".py")].split("/") if entry.endswith(".py") else entry.split("/")
    if steps[-1] == "__init__":
        steps.pop()
    if not module:
        module = ".".join(["plugins", _identifier(os.path.basename(root)), *steps])
    parts = module.split(".")
    beyond = parts[: len(parts) - len(steps)]
    if len(parts) < len(steps) or parts[len(beyond) :] != steps:
        raise NotAPlugin(f"the module {module} is not in the file {entry}")
    return [".".join(beyond[: n + 1]) for n in range(len(beyond))], module


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "plugin"


def _package(name: str, directory: str) -> None:
    """Make a namespace package, or of a directory with an __init__.py a regular one."""
    search = [directory] if directory else []
    init = os.path.join(directory, "__init__.py")
    if directory and os.path.isfile(init):
        spec = _files.spec_from_file_location(name, init, submodule_search_locations=search)
    else:
        spec = _importing.ModuleSpec(name, None, is_package=True)
    module = _importing.module_from_spec(spec)
    module.__path__ = search
    sys.modules[name] = module
    if spec.loader is not None:
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
