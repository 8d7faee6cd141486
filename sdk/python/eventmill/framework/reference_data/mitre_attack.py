"""The techniques of MITRE ATT&CK, if the host has them."""

from __future__ import annotations

import logging
from typing import Any

from framework import _host

KEY = "mitre_attack_enterprise"

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
