"""The techniques of MITRE ATT&CK that the host has."""

from __future__ import annotations

import logging
from typing import Any

from framework import _host

KEY = "mitre_techniques"

_logger = logging.getLogger("eventmill.reference_data")
_techniques: dict[str, dict[str, Any]] = {}
_warned = False


def get_mitre_db() -> dict[str, dict[str, Any]]:
    """Return technique id -> {name, tactics, url, matrix}; empty, with one warning, where there is no such data."""
    global _techniques, _warned
    if not _techniques:
        found = _host.reference(KEY) if _host.reference is not None else None
        if isinstance(found, dict) and found:
            _techniques = found
        elif not _warned:
            _warned = True
            _logger.warning("there is no reference data %s: techniques of ATT&CK are not resolved", KEY)
    return _techniques


def validate_technique_id(technique_id: Any) -> bool:
    """Report whether there is a technique of that id; without data no id can be called wrong."""
    known = get_mitre_db()
    return not known or isinstance(technique_id, str) and technique_id in known


def enrich_technique(technique_id: Any) -> dict[str, Any] | None:
    """Return a technique with its id, None where it is not known."""
    found = get_mitre_db().get(technique_id) if isinstance(technique_id, str) else None
    return {"technique_id": technique_id, **found} if isinstance(found, dict) else None


def technique_count() -> int:
    """Return how many techniques are known."""
    return len(get_mitre_db())
