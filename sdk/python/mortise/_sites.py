"""Where installed packages are, for an interpreter started without `site`.

What `site` does beyond that is left out on purpose. Running the .pth files of
installed packages can take longer than everything else of a start together;
so packages that are linked by one (pip install --editable) are not found.
"""

from __future__ import annotations

import os
import sys
from _imp import extension_suffixes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import BYTECODE_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader, SourcelessFileLoader
    from typing import Callable
else:  # importlib.machinery, without importlib
    from _frozen_importlib_external import (
        BYTECODE_SUFFIXES,
        SOURCE_SUFFIXES,
        ExtensionFileLoader,
        FileFinder,
        SourceFileLoader,
        SourcelessFileLoader,
    )


def add() -> None:
    """Put the site directories on the path, after what the host has installed for this plugin alone."""
    found = directories()
    own = sys._xoptions.get("environment")  # the host says where that is
    if isinstance(own, str) and os.path.isdir(own):
        sys.path.append(own)
    sys.path += found
    if sys.pycache_prefix:
        read_bytecode(found)


def read_bytecode(found: list[str]) -> None:
    """Read the bytecode that was installed with the standard library and what is in the directories, whatever the prefix."""
    library = os.path.dirname(os.__file__)
    sys.path_hooks.insert(0, compiled([library, *found]))
    for path in (library, *found):
        sys.path_importer_cache.pop(path, None)


def compiled(roots: list[str]) -> Callable[[str], FileFinder]:
    """Return a path hook for what is in some directories: it also takes the bytecode that was installed with a module.

    With a pycache_prefix Python looks for bytecode there only. Who may not write there would compile all of a large package at
    every start. What is elsewhere, as the plugin itself is, keeps to the prefix: bytecode beside it need not be what its source says.
    """
    beneath = tuple(os.path.join(root, "") for root in roots)
    loaders = (ExtensionFileLoader, extension_suffixes()), (_Loader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES)

    def hook(path: str) -> FileFinder:
        if not os.path.join(path, "").startswith(beneath) or not os.path.isdir(path):
            raise ImportError("not installed")
        return FileFinder(path, *loaders)

    return hook


class _Loader(SourceFileLoader):
    def get_data(self, path: str) -> bytes:
        try:
            return super().get_data(path)
        except OSError:
            if path == self.path or not path.endswith(".pyc"):
                raise
        folder = os.path.join(os.path.dirname(self.path), "__pycache__")
        return super().get_data(os.path.join(folder, os.path.basename(path)))


def directories() -> list[str]:
    """Return the site directories there are, in the order of `site`."""
    prefix = sys.prefix
    home = os.path.dirname(os.path.dirname(sys.executable or ""))
    shared = True
    try:
        # Before 3.14 it is `site` that tells a virtual environment from what it was made of.
        with open(os.path.join(home, "pyvenv.cfg"), encoding="utf-8") as config:
            shared = "include-system-site-packages=true" in config.read().lower().replace(" ", "")
        found = _below(home)
        prefix = sys.base_prefix
    except (OSError, ValueError):
        found = []
    if shared:
        user = sys._xoptions.get("user_site")  # the host knows it; HOME is another one here
        found += [user] if isinstance(user, str) else []
        found += _below(prefix)
        if prefix == "/usr":  # Debian's own
            version = "python%d.%d" % sys.version_info[:2]
            found += [f"/usr/{folder}/dist-packages" for folder in (f"local/lib/{version}", "lib/python3", f"lib/{version}")]
    return [path for path in found if os.path.isdir(path)]


def _below(prefix: str) -> list[str]:
    library = os.path.dirname(os.__file__)  # .../lib/python3.13t, whatever this build calls it
    if os.name == "nt":
        return [os.path.join(prefix, "Lib", "site-packages")]
    folders = dict.fromkeys(["lib", os.path.basename(os.path.dirname(library))])  # lib64 on some systems
    return [os.path.join(prefix, folder, os.path.basename(library), "site-packages") for folder in folders]
