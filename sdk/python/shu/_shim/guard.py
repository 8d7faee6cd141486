"""Imports that a plugin may not make: HTTP clients, and the inside of the host.

All network goes through host.http; the operating system sees to that, and this
says so early and in words. The rule is about who imports:

    a module of the standard library   gets a stand-in, which answers every use
                                       with ImportError; so xml.sax works, as far
                                       as it fetches nothing
    an installed package               gets the stand-in of what is in the standard
                                       library, urllib.request; a client that may be there
                                       or not is not there
                                       or not is not there; so with what the host has
                                       installed in _environment/
    the plugin, with its vendor/       gets ImportError at once

The real module is thus never in this process, whatever way leads to it:
importlib, sys.modules, an attribute of `urllib`, exec.
"""

from __future__ import annotations

import builtins
import os
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLIENTS = frozenset(("requests", "httpx", "urllib3"))

_bootstrap = sys.modules["_frozen_importlib"]
_library = os.path.dirname(os.path.realpath(os.__file__))
_import = builtins.__import__
_root = ""  # of the plugin's package
_environment = ""  # in it, what the host has installed for the plugin


def rule(name: str) -> str:
    """Return why a module is denied, "" if it is not."""
    top = name.partition(".")[0]
    if top in CLIENTS or f"{name}.".startswith("urllib.request."):
        return f"import of {name} is denied: plugins have no HTTP clients of their own; use host.http, and urllib.parse for URLs"
    if top == "shu":
        return f"import of {name} is denied: plugins do not import the host; use the host object, and shu_plugin_sdk"
    return ""


def install(root: str) -> None:
    """Guard all imports of this process from now on; the plugin's own code is in root."""
    global _root, _environment
    _root = os.path.join(os.path.realpath(root), "")
    _environment = os.path.join(_root, "_environment", "")
    for name in list(sys.modules):
        if rule(name):
            parent, _, own = name.rpartition(".")
            vars(sys.modules.get(parent, sys)).pop(own, None)
            del sys.modules[name]
    sys.meta_path.insert(0, Guard())
    builtins.__import__ = guarded


def guarded(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """Import as usual, except what is denied: a stand-in may be loaded, and stays reserved for the library."""
    if not level and type(name) is str and (name.startswith(("urllib", "shu")) or name.partition(".")[0] in CLIENTS):
        for wanted in (name, *(f"{name}.{item}" for item in fromlist or ())):
            why = rule(wanted)
            if why and (wanted == name or wanted in sys.modules) and not _stands_in(wanted, sys._getframe(1).f_code.co_filename):
                raise ImportError(why, name=wanted)
    return _import(name, globals, locals, fromlist, level)


class Guard:
    """The first finder of modules."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find the stand-in of what is denied; raises ImportError for an importer that may not have it."""
        why = rule(name)
        if not why:
            return None
        if not _stands_in(name, _importer()):
            raise ImportError(why, name=name)
        return _bootstrap.ModuleSpec(name, self)

    def create_module(self, spec: Any) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A stand-in has nothing to run."""


class StandIn(ModuleType):
    """A denied module, for library modules that import it and may never use it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the import machinery asks every module for
            raise AttributeError(name)
        raise ImportError(rule(self.__name__), name=self.__name__)


def _importer() -> str:
    """Return the file of the code that imports, past the machinery of importing."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path != __file__ and not path.startswith(_machinery):
            return path
        frame = frame.f_back  # type: ignore[assignment]
    return ""


_machinery = (
    "<frozen importlib",
    "<frozen runpy",
    *(os.path.join(_library, name) for name in ("importlib" + os.sep, "pkgutil.py", "runpy.py", "imp.py")),
)


def _stands_in(name: str, path: str) -> bool:
    """Report whether the code in a file gets a stand-in of a denied module, and no ImportError."""
    top = name.partition(".")[0]
    return top != "shu" and (_of_library(path) or top == "urllib" and _installed(path))


def _installed(path: str) -> bool:
    """Report whether a file is of a package on the path that is not the plugin's."""
    path = os.path.realpath(path) if os.path.isabs(path) else ""
    if path.startswith(_environment):
        return True
    if not path or path.startswith(_root):
        return False
    places = (os.path.join(os.path.realpath(place), "") for place in sys.path if place)
    return any(path.startswith(place) and not place.startswith(_root) for place in places)


def _of_library(path: str) -> bool:
    """Report whether a file is the standard library's; site-packages stand below it and are not."""
    if path.startswith("<frozen "):
        return True
    path = os.path.realpath(path)
    if not path.startswith(_library + os.sep):
        return False
    first = path[len(_library) + 1 :].partition(os.sep)[0]
    return first not in ("site-packages", "dist-packages")
