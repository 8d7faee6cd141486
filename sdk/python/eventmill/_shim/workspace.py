"""The working directory of tools.

Tools write relative to it ("workspace/artifacts/x"), relative to the absolute
EVENTMILL_WORKSPACE, or into a bucket that is a directory of the workspace. All
ways lead to the one directory `workspace` of the working directory.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

_PILLARS = ("network-forensics", "cloud-investigation", "log-analysis", "risk-assessment", "threat-modeling")


def enter(scratch: str, config: Mapping[str, Any] = {}) -> str:
    """Make the working directory below scratch and go there, as every call begins; return the workspace in it."""
    here = os.path.join(os.path.abspath(scratch), "workspace")
    path = os.path.join(here, "workspace")
    prefix = config.get("EVENTMILL_BUCKET_PREFIX")
    if not isinstance(prefix, str) or not prefix or os.path.basename(prefix) != prefix:
        prefix = "eventmill"
    for inside in ("artifacts", *(os.path.join("storage", f"{prefix}-{name}") for name in ("common", *_PILLARS))):
        os.makedirs(os.path.join(path, inside), exist_ok=True)
    os.environ["EVENTMILL_WORKSPACE"] = path
    os.chdir(here)
    return path
