"""Where installed packages are, for an interpreter started without `site`.

What `site` does beyond that is left out on purpose. Running the .pth files of
installed packages can take longer than everything else of a start together;
so packages that are linked by one (pip install --editable) are not found.
"""

from __future__ import annotations

import os
import sys


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
        found += _below(prefix)
        if prefix == "/usr":  # Debian's own
            found += ["/usr/local/lib/python%d.%d/dist-packages" % sys.version_info[:2], "/usr/lib/python3/dist-packages"]
    return [path for path in found if os.path.isdir(path)]


def _below(prefix: str) -> list[str]:
    library = os.path.dirname(os.__file__)  # .../lib/python3.13t, whatever this build calls it
    if os.name == "nt":
        return [os.path.join(prefix, "Lib", "site-packages")]
    folders = dict.fromkeys(["lib", os.path.basename(os.path.dirname(library))])  # lib64 on some systems
    return [os.path.join(prefix, folder, os.path.basename(library), "site-packages") for folder in folders]
