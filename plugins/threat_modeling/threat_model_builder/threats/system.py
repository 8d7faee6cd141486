"""A system as its owners describe it: zones of trust, components, flows of data between them."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .tooling import Refused

TYPES = ("external", "process", "store")
SENSITIVITIES = {"public": 1, "internal": 2, "confidential": 4, "secret": 5}
CRITICALITIES = {"low": 1, "medium": 2, "high": 4, "critical": 5}
CONTROLS = (
    "authentication", "mfa", "authorization", "least_privilege", "tls", "mutual_tls", "signing", "input_validation", "waf", "rate_limit", "redundancy", "logging",
    "log_integrity", "encryption_at_rest", "backups", "segmentation", "patching", "secrets_management", "edr", "code_signing",
)  # fmt: skip
MOST_COMPONENTS, MOST_FLOWS, MOST_ZONES = 500, 2000, 100
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Zone(NamedTuple):
    """Where components stand that trust each other alike; trust is 0 (anyone) to 10."""

    id: str
    name: str
    trust: int


class Component(NamedTuple):
    """Something that acts or keeps data."""

    id: str
    name: str
    type: str
    zone: str
    criticality: str
    data: Tuple[str, ...]
    controls: Tuple[str, ...]
    technology: str
    accounted: bool  # whether its controls were given at all


class Flow(NamedTuple):
    """Data that goes from one component to another."""

    id: str
    source: str
    target: str
    protocol: str
    data: Tuple[str, ...]
    controls: Tuple[str, ...]
    authenticated: Optional[bool]  # None where nothing was said
    encrypted: Optional[bool]


class System:
    """All of it, checked: each id once, each reference to something."""

    def __init__(self, described: Any) -> None:
        errors: List[str] = []
        if not isinstance(described, dict):
            raise Refused("INPUT_VALIDATION_FAILED", "the system must be an object with components and flows", errors=["model: not an object"])
        for name in described:
            if name not in ("name", "description", "zones", "components", "flows"):
                errors.append("model.%s is not known; known are name, description, zones, components, flows" % str(name)[:60])
        self.name = _text(described, "name", "model", errors) or "a system"
        self.zones: Dict[str, Zone] = {}
        self.components: Dict[str, Component] = {}
        self.flows: Dict[str, Flow] = {}
        for entry, at in _entries(described, "zones", MOST_ZONES, errors):
            id = _id(entry, at, self.zones, errors)
            trust = entry.get("trust", 5)
            if isinstance(trust, bool) or not isinstance(trust, int) or not 0 <= trust <= 10:
                errors.append("%s.trust must be a whole number from 0 to 10" % at)
                trust = 5
            self.zones[id] = Zone(id, _text(entry, "name", at, errors) or id, trust)
        for entry, at in _entries(described, "components", MOST_COMPONENTS, errors):
            self._component(entry, at, errors)
        for entry, at in _entries(described, "flows", MOST_FLOWS, errors):
            self._flow(entry, at, errors)
        if not self.components:
            errors.append("model.components must have at least one component")
        if errors:
            raise Refused("INPUT_VALIDATION_FAILED", "the description of the system is wrong: " + "; ".join(errors[:5]), errors=errors[:50])

    def _component(self, entry: Dict[str, Any], at: str, errors: List[str]) -> None:
        id = _id(entry, at, self.components, errors)
        zone = entry.get("zone", "")
        if zone and zone not in self.zones:
            errors.append("%s.zone: there is no zone %s" % (at, str(zone)[:60]))
        kind = _choice(entry, "type", TYPES, "process", at, errors)
        self.components[id] = Component(
            id, _text(entry, "name", at, errors) or id, kind, str(zone), _choice(entry, "criticality", CRITICALITIES, "medium", at, errors),
            _choices(entry, "data", SENSITIVITIES, at, errors), _choices(entry, "controls", CONTROLS, at, errors), _text(entry, "technology", at, errors), "controls" in entry,
        )  # fmt: skip

    def _flow(self, entry: Dict[str, Any], at: str, errors: List[str]) -> None:
        ends = []
        for name in ("from", "to"):
            end = entry.get(name)
            if end not in self.components:
                errors.append("%s.%s: there is no component %s" % (at, name, str(end)[:60]))
            ends.append(str(end))
        said = []
        for name in ("authenticated", "encrypted"):
            value = entry.get(name)
            if value is not None and not isinstance(value, bool):
                errors.append("%s.%s must be true or false" % (at, name))
            said.append(value if isinstance(value, bool) else None)
        controls = _choices(entry, "controls", CONTROLS, at, errors)
        if "tls" in controls or "mutual_tls" in controls:
            said[1] = True
        if {"authentication", "mfa", "mutual_tls"} & set(controls):
            said[0] = True
        id = _id(dict(entry, id=entry.get("id", "%s-%s" % tuple(ends))), at, self.flows, errors)
        self.flows[id] = Flow(id, ends[0], ends[1], _text(entry, "protocol", at, errors), _choices(entry, "data", SENSITIVITIES, at, errors), controls, said[0], said[1])

    def trust(self, component: str) -> int:
        """How far a component is trusted: its zone's trust; outside of zones 0 for external ones and 5 for others."""
        one = self.components[component]
        return self.zones[one.zone].trust if one.zone else 0 if one.type == "external" else 5

    def crosses(self, flow: Flow) -> bool:
        """Whether a flow crosses a boundary of trust."""
        a, b = self.components[flow.source], self.components[flow.target]
        return a.zone != b.zone or self.trust(a.id) != self.trust(b.id)

    def exposure(self, component: str) -> int:
        """How easily a component is reached, 1 to 5, by the least trusted that sends to it."""
        trusts = [self.trust(flow.source) for flow in self.flows.values() if flow.target == component]
        least = min(trusts, default=self.trust(component))
        return 5 if least == 0 else 4 if least <= 2 else 3 if least < self.trust(component) else 2 if trusts else 1


def _entries(described: Dict[str, Any], name: str, most: int, errors: List[str]) -> List[Tuple[Dict[str, Any], str]]:
    listed = described.get(name, [])
    if not isinstance(listed, list):
        errors.append("model.%s must be a list" % name)
        return []
    if len(listed) > most:
        errors.append("model.%s has %d entries; at most %d are taken" % (name, len(listed), most))
        return []
    found = []
    for i, entry in enumerate(listed):
        at = "model.%s[%d]" % (name, i)
        if isinstance(entry, dict):
            found.append((entry, at))
        else:
            errors.append("%s must be an object" % at)
    return found


def _id(entry: Dict[str, Any], at: str, known: Dict[str, Any], errors: List[str]) -> str:
    id = entry.get("id")
    if not isinstance(id, str) or not (_ID.fullmatch(id) or "-" in id and len(id) <= 129):
        errors.append("%s.id must be letters, digits, '_', '.' and '-', at most 64" % at)
        return at
    if id in known:
        errors.append("%s.id: %s is there twice" % (at, id))
    return id


def _text(entry: Dict[str, Any], name: str, at: str, errors: List[str]) -> str:
    value = entry.get(name, "")
    if not isinstance(value, str) or len(value) > 200:
        errors.append("%s.%s must be text of at most 200 characters" % (at, name))
        return ""
    return " ".join(value.split())


def _choice(entry: Dict[str, Any], name: str, known: Any, usual: str, at: str, errors: List[str]) -> str:
    value = entry.get(name, usual)
    if not isinstance(value, str) or value not in known:
        errors.append("%s.%s must be one of %s" % (at, name, ", ".join(known)))
        return usual
    return value


def _choices(entry: Dict[str, Any], name: str, known: Any, at: str, errors: List[str]) -> Tuple[str, ...]:
    values = entry.get(name, [])
    if not isinstance(values, list):
        errors.append("%s.%s must be a list" % (at, name))
        return ()
    for value in values:
        if not isinstance(value, str) or value not in known:
            errors.append("%s.%s: %s is not one of %s" % (at, name, str(value)[:60], ", ".join(known)))
    return tuple(dict.fromkeys(v for v in values if isinstance(v, str) and v in known))
