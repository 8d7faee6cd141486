"""The working directory of tools.

Tools write relative to it ("workspace/artifacts/x") and relative to
EVENTMILL_WORKSPACE; a link in the directory to itself makes both the same.
"""

from __future__ import annotations

import os


def enter(scratch: str) -> str:
    """Make the workspace below scratch the working directory, as every call begins; return its path."""
    path = os.path.join(os.path.abspath(scratch), "workspace")
    os.makedirs(os.path.join(path, "artifacts"), exist_ok=True)
    try:
        os.symlink(".", os.path.join(path, "workspace"))
    except FileExistsError:
        pass
    os.environ["EVENTMILL_WORKSPACE"] = path
    os.chdir(path)
    return path
