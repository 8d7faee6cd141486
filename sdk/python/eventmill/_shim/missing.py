"""Packages that a tool imports and this machine does not have."""

from __future__ import annotations

import os
import sys

from mortise._session import error_message

from .answer import DEPENDENCY_MISSING, INTERNAL_ERROR, Failure

# Where the name to install is not the name to import.
_DISTRIBUTIONS = {
    "bs4": "beautifulsoup4",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "fitz": "PyMuPDF",
    "fpdf": "fpdf2",
    "google": "google-cloud-storage",
    "magic": "python-magic",
    "PIL": "Pillow",
    "pptx": "python-pptx",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
_OURS = ("plugins", "framework", "mortise", "eventmill")


def missing(exc: BaseException, tool: str, directory: str) -> Failure | None:
    """Return the failure for an import that found nothing, None for any other exception."""
    if not isinstance(exc, ImportError):
        return None
    if exc.name is None:  # raised by hand, with a sentence about what to install
        return Failure(DEPENDENCY_MISSING, f"{tool}: {error_message(exc)}", {"exception": type(exc).__name__})
    top = exc.name.partition(".")[0]
    if not isinstance(exc, ModuleNotFoundError) or top in _OURS:
        return None
    if os.path.exists(os.path.join(directory, top + ".py")) or os.path.isdir(os.path.join(directory, top)):
        message = f"{tool}: {top} stands beside the entry point: import it as `from . import {top}`"
        return Failure(INTERNAL_ERROR, message, {"module": exc.name})
    python = "Python %d.%d (%s)" % (*sys.version_info[:2], sys.executable)
    details = {"package": top, "module": exc.name}
    if top in getattr(sys, "stdlib_module_names", ()):
        message = f"{tool} needs the module {exc.name}, a part of Python that {python} was built or packaged without"
    else:
        details["install"], besides = _way_to(_DISTRIBUTIONS.get(top, top), sys.executable, os.path.dirname(os.__file__))
        message = f"{tool} needs the Python package {top}, which {python} does not have; get it with: {details['install']}{besides}"
        if top not in _DISTRIBUTIONS:
            message += "; a module of your own has to stand below plugins/"
    return Failure(DEPENDENCY_MISSING, message, details)


def _way_to(package: str, python: str, library: str) -> tuple[str, str]:
    """Return the command that installs a package for an interpreter with that standard library, and what to do besides."""
    own = os.path.exists(os.path.join(os.path.dirname(os.path.dirname(python)), "pyvenv.cfg"))
    if own or not os.path.exists(os.path.join(library, "EXTERNALLY-MANAGED")):  # PEP 668: there pip refuses
        return f"{python} -m pip install {package}", ""
    command = f"{python} -m venv ENV && ENV/bin/python3 -m pip install {package}"
    return command, ", and set interpreters.python in mortise.yaml to that ENV/bin/python3, or install it as a package of this system"
