"""What ATT&CK technique ids stand for, from the host's reference data."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional


class Techniques:
    """Resolves technique ids; without reference data every answer is None."""

    def __init__(self, context: Any) -> None:
        self._tables: List[Mapping[str, Any]] = []
        view = getattr(context, "reference_data", None)
        self._add(view.get("mitre_techniques") if view is not None else None)
        if not self._tables:
            self._add(_common_table())

    @property
    def known(self) -> bool:
        """Whether there is any reference data."""
        return bool(self._tables)

    def _add(self, table: Any) -> None:
        if isinstance(table, Mapping) and isinstance(table.get("techniques"), (list, Mapping)):
            table = table["techniques"]
        if isinstance(table, list):
            table = {str(t.get("id") or t.get("technique_id")): t for t in table if isinstance(t, Mapping)}
        if isinstance(table, Mapping) and table:
            self._tables.append(table)

    def resolve(self, technique: str) -> Optional[Dict[str, Any]]:
        """Name, tactics and address of a technique, or None if it is not known."""
        for table in self._tables:
            entry = table.get(technique)
            if isinstance(entry, str):
                entry = {"name": entry}
            if not isinstance(entry, Mapping):
                continue
            tactics = entry.get("tactics") or entry.get("tactic") or []
            if isinstance(tactics, str):
                tactics = [tactics]
            name = str(entry.get("name") or "")[:200]
            if not name:
                continue
            return {"name": name, "tactics": [str(t)[:100] for t in list(tactics)[:20]], "url": str(entry.get("url") or "")[:300]}
        return None


def _common_table() -> Any:
    try:
        from framework.reference_data.mitre_attack import get_mitre_db
    except ImportError:
        return None
    return get_mitre_db()
