"""The package `plugins`, wherever the tree is and whatever its directory is called.

A tool is loaded as plugins.<pillar>.<directory>.<entry point>, which is also
how its neighbours import it: both see the same module and the same globals. A
tool whose place is no name for a package is loaded by its path.

The environment says what the package is, for processes that multiprocessing
spawns: their first import of it makes the same one there (see ../_spawned).
"""

from __future__ import annotations

import os
import sys

from mortise import _start
from mortise._session import error_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# The machinery of imports, without the package importlib around it.
_importing: Any = sys.modules["_frozen_importlib"]
_files: Any = sys.modules["_frozen_importlib_external"]


_ROOT, _SINGLE = "EVENTMILL_PLUGINS", "EVENTMILL_PLUGINS_SINGLE"


class Tree:
    """The modules under one root."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._ready = False
        self.single: tuple[str, str] | None = None
        """Where in `plugins` the root itself stands, if it is one tool."""

    def load(self, place: tuple[str, ...], path: str, directory: str) -> ModuleType:
        """Return the module of the file at path, in the tool's directory; raises what its code raises."""
        if not self._ready:
            self._ready = True
            os.environ[_ROOT], os.environ[_SINGLE] = self._root, "/".join(self.single or ())
            if os.path.basename(self._root) == "plugins" and self.single is None:
                sys.path.append(os.path.dirname(self._root))  # last: it hides nothing
            _install(self._root, self.single)
        inner = os.path.relpath(path, directory)[: -len(".py")].split(os.sep)
        parts = ["plugins", *place, *inner]
        package = ".".join(parts[:-1])
        if not any(not part or "." in part for part in parts) and _imports(package):
            name = f"{package}.{parts[-1]}"
            __import__(name)
            module: ModuleType = sys.modules[name]
            if os.path.realpath(getattr(module, "__file__", None) or "") == os.path.realpath(path):
                return module
        return load_path("eventmill_" + "_".join([*place, *inner]), path)


def join() -> None:
    """Make the package in a process that a tool has spawned; raises ModuleNotFoundError where there was no tool."""
    root = os.environ.get(_ROOT)
    if not root:
        raise ModuleNotFoundError("No module named 'plugins'", name="plugins")
    _start.join()
    pillar, _, name = os.environ.get(_SINGLE, "").partition("/")
    _install(root, (pillar, name) if name else None)


def _install(root: str, single: tuple[str, str] | None) -> None:
    if single is None:
        _package("plugins", root, [root])
        return
    pillar, name = single
    _package("plugins", "", [])
    _package(f"plugins.{pillar}", "", [])
    _package(f"plugins.{pillar}.{name}", root, [root])


def load_path(name: str, path: str) -> ModuleType:
    """Load a file as a module of that name; one that fails leaves nothing behind."""
    spec = _files.spec_from_file_location(name, path)
    module: ModuleType = _importing.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _package(name: str, directory: str, search: list[str]) -> None:
    """Make a regular package, and run the directory's __init__.py if there is one."""
    init = os.path.join(directory, "__init__.py") if directory else ""
    there = bool(init) and os.path.isfile(init)
    if there:
        spec = _files.spec_from_file_location(name, init, submodule_search_locations=search)
    else:
        spec = _importing.ModuleSpec(name, None, is_package=True)
    module = _importing.module_from_spec(spec)
    module.__path__ = search
    if init and not there:
        module.__file__ = init
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
    if there:
        _attempt(init, lambda: spec.loader.exec_module(module))


def _imports(package: str) -> bool:
    """Report whether the package of a tool can be imported; its __init__.py may be broken and the tool not."""
    return _attempt(package, lambda: __import__(package))


def _attempt(what: str, action: Any) -> bool:
    try:
        action()
    except BaseException as exc:
        print(f"eventmill: {what}: {type(exc).__name__}: {error_message(exc)}", file=sys.stderr)
        return False
    return True
