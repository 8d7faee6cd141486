"""The rules: which threats of STRIDE a component or a flow has, and what would stop them.

Each rule says to what it applies, why, which techniques of ATT&CK carry it out,
and which controls answer it. Likelihood and impact are 1 to 5; a control in
place takes one from the likelihood, and from the impact where it limits damage.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from .system import CRITICALITIES, SENSITIVITIES, Component, Flow, System

CATEGORIES = {
    "S": "spoofing", "T": "tampering", "R": "repudiation", "I": "information_disclosure", "D": "denial_of_service", "E": "elevation_of_privilege",
}  # fmt: skip
LIMITS_DAMAGE = frozenset(("least_privilege", "segmentation", "backups", "encryption_at_rest", "redundancy"))

Element = Union[Component, Flow]


class Rule(NamedTuple):
    """One threat."""

    id: str
    category: str  # a letter of STRIDE
    title: str
    techniques: Tuple[str, ...]
    controls: Tuple[str, ...]  # those that answer it
    applies: Callable[[System, Any], Optional[str]]  # why it applies; None where it does not
    of: str  # flow, or a component's type


def _crossing(system: System, flow: Flow) -> str:
    a, b = system.components[flow.source], system.components[flow.target]
    if not system.crosses(flow):
        return "it goes from %s to %s" % (a.id, b.id)
    return "it crosses from %s (trust %d) to %s (trust %d)" % (a.zone or a.id, system.trust(a.id), b.zone or b.id, system.trust(b.id))


def _unsaid(value: Optional[bool], what: str) -> str:
    return "is not %s" % what if value is False else "is not said to be %s" % what


def _unauthenticated(system: System, flow: Flow) -> Optional[str]:
    if flow.authenticated or system.components[flow.target].type == "external":
        return None
    return "%s, and %s" % (_crossing(system, flow), _unsaid(flow.authenticated, "authenticated"))


def _credentials(system: System, flow: Flow) -> Optional[str]:
    if not flow.authenticated or system.trust(flow.source) >= system.trust(flow.target) or "mutual_tls" in flow.controls:
        return None
    return "%s; a stolen password of one of its users is enough" % _crossing(system, flow)


def _clear(system: System, flow: Flow) -> Optional[str]:
    if flow.encrypted:
        return None
    return "%s, and %s" % (_crossing(system, flow), _unsaid(flow.encrypted, "encrypted"))


def _read(system: System, flow: Flow) -> Optional[str]:
    sensitive = [d for d in flow.data if SENSITIVITIES[d] >= 2]
    why = _clear(system, flow)
    return "%s; it carries %s data" % (why, " and ".join(sensitive)) if why and sensitive else None


def _flooded(system: System, flow: Flow) -> Optional[str]:
    return _crossing(system, flow) if system.trust(flow.source) < system.trust(flow.target) else None


def _reached(system: System, component: Component) -> Optional[str]:
    senders = [f.source for f in system.flows.values() if f.target == component.id and system.trust(f.source) < system.trust(component.id)]
    return "it takes input from %s, which it trusts less" % ", ".join(sorted(set(senders))[:5]) if senders else None


def _acted_for(system: System, component: Component) -> Optional[str]:
    senders = sorted({f.source for f in system.flows.values() if f.target == component.id and f.authenticated})
    return "it acts for %s" % ", ".join(senders[:5]) if senders else None


def _external(system: System, component: Component) -> Optional[str]:
    targets = sorted({f.target for f in system.flows.values() if f.source == component.id})
    return "%s believe what it sends" % ", ".join(targets[:5]) if targets else None


def _kept(system: System, component: Component) -> Optional[str]:
    writers = sorted({f.source for f in system.flows.values() if f.target == component.id})
    return "%s can write to it" % ", ".join(writers[:5]) if writers else None


def _sensitive(system: System, component: Component) -> Optional[str]:
    held = [d for d in component.data if SENSITIVITIES[d] >= 2]
    return "it keeps %s data" % " and ".join(held) if held else None


def _leads_on(system: System, component: Component) -> Optional[str]:
    onward = sorted({f.target for f in system.flows.values() if f.source == component.id and CRITICALITIES[system.components[f.target].criticality] >= 4})
    return "it can reach %s, which matter more" % ", ".join(onward[:5]) if onward else None


def _matters(system: System, component: Component) -> Optional[str]:
    return "its criticality is %s" % component.criticality if CRITICALITIES[component.criticality] >= 4 else None


RULES: Tuple[Rule, ...] = (
    Rule("flow-spoofed", "S", "Someone else sends in the name of the source", ("T1557", "T1190"), ("authentication", "mutual_tls", "signing"), _unauthenticated, "flow"),
    Rule("flow-credentials", "S", "Stolen or guessed credentials are used", ("T1078", "T1110"), ("mfa", "rate_limit", "logging"), _credentials, "flow"),
    Rule("flow-changed", "T", "Data is changed on its way", ("T1557", "T1565"), ("tls", "mutual_tls", "signing"), _clear, "flow"),
    Rule("flow-read", "I", "Data is read on its way", ("T1040",), ("tls", "mutual_tls", "segmentation"), _read, "flow"),
    Rule("flow-flooded", "D", "The way is flooded", ("T1498",), ("rate_limit", "waf", "redundancy"), _flooded, "flow"),
    Rule("external-impersonated", "S", "An outside party is impersonated", ("T1566", "T1199"), ("authentication", "mfa", "signing"), _external, "external"),
    Rule("external-denies", "R", "An outside party denies what it did", (), ("logging", "log_integrity", "signing"), _external, "external"),
    Rule("process-exploited", "E", "A weakness is exploited to run code", ("T1190", "T1203"), ("input_validation", "patching", "waf", "least_privilege", "edr"), _reached, "process"),
    Rule("process-injected", "T", "Crafted input changes what it does", ("T1190", "T1059"), ("input_validation", "waf", "authorization"), _reached, "process"),
    Rule("process-exceeds", "E", "A user gets at more than is theirs", ("T1068", "T1548"), ("authorization", "least_privilege", "logging"), _acted_for, "process"),
    Rule("process-denies", "R", "What was done cannot be traced", ("T1070",), ("logging", "log_integrity"), _acted_for, "process"),
    Rule("process-secrets", "I", "Its credentials are taken", ("T1552", "T1003"), ("secrets_management", "least_privilege", "edr"), _leads_on, "process"),
    Rule("process-pivot", "E", "From it others are reached", ("T1021", "T1210"), ("segmentation", "least_privilege", "edr"), _leads_on, "process"),
    Rule("process-exhausted", "D", "It is made to stop", ("T1499",), ("rate_limit", "redundancy", "waf"), _reached, "process"),
    Rule("process-supply", "T", "Its code or a library is replaced", ("T1195",), ("code_signing", "patching"), _matters, "process"),
    Rule("store-changed", "T", "Kept data is changed", ("T1565",), ("authorization", "least_privilege", "logging", "backups"), _kept, "store"),
    Rule("store-read", "I", "Kept data is read", ("T1213", "T1530"), ("encryption_at_rest", "authorization", "least_privilege"), _sensitive, "store"),
    Rule("store-destroyed", "D", "Kept data is destroyed or encrypted", ("T1485", "T1486"), ("backups", "redundancy", "least_privilege"), _kept, "store"),
    Rule("store-untraced", "R", "Who changed data cannot be traced", ("T1070",), ("logging", "log_integrity"), _kept, "store"),
)  # fmt: skip


def threats(system: System) -> List[Dict[str, Any]]:
    """All threats, the highest risk first; each has an id that stays while the description does."""
    found: List[Dict[str, Any]] = []
    for rule in RULES:
        elements: List[Element] = list(system.flows.values()) if rule.of == "flow" else [c for c in system.components.values() if c.type == rule.of]
        for element in elements:
            why = rule.applies(system, element)
            if why is not None:
                found.append(_threat(system, rule, element, why))
    found.sort(key=lambda t: (-t["risk"], -t["inherent_risk"], t["element"], t["rule"]))
    return found


def _threat(system: System, rule: Rule, element: Element, why: str) -> Dict[str, Any]:
    if isinstance(element, Flow):
        source, target = system.components[element.source], system.components[element.target]
        likelihood = 5 if system.trust(source.id) == 0 else 4 if system.trust(source.id) <= 2 else 3 if system.crosses(element) else 2
        data = [SENSITIVITIES[d] for d in element.data]
        impact = max(data) if data and rule.category in "TI" else max(CRITICALITIES[target.criticality], *data) if data else CRITICALITIES[target.criticality]
        present = set(element.controls) | (set(target.controls) if rule.category != "I" else set())
    else:
        likelihood = max(system.exposure(element.id) - (1 if rule.category in "RD" else 0), 1)
        impact = max([CRITICALITIES[element.criticality]] + ([SENSITIVITIES[d] for d in element.data] if rule.category in "TIE" else []))
        present = set(element.controls)
    answered = [c for c in rule.controls if c in present]
    after = max(1, likelihood - sum(1 for c in answered if c not in LIMITS_DAMAGE))
    less = max(1, impact - (1 if any(c in LIMITS_DAMAGE for c in answered) else 0))
    return {
        "id": "%s:%s" % (element.id, rule.id), "rule": rule.id, "element": element.id, "element_type": "flow" if isinstance(element, Flow) else element.type,
        "category": CATEGORIES[rule.category], "title": rule.title, "why": why, "techniques": list(rule.techniques), "likelihood": after, "impact": less,
        "risk": after * less, "level": level(after * less), "inherent_risk": likelihood * impact, "controls_present": answered,
        "controls_missing": [c for c in rule.controls if c not in present],
    }  # fmt: skip


def level(risk: int) -> str:
    """A risk of 1 to 25 in words."""
    return "critical" if risk >= 20 else "high" if risk >= 12 else "medium" if risk >= 6 else "low"
