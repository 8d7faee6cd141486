from dataclasses import dataclass, field
from typing import Dict, List, Optional


@dataclass(frozen=True)
class Component:
    name: str
    version: str
    purl: Optional[str] = None
    licences: tuple = field(default_factory=tuple)


class UnknownFormat(Exception):
    pass


def _cyclonedx(doc) -> List[Component]:
    out, stack = [], list(doc.get("components") or [])
    while stack:
        c = stack.pop(0)
        stack.extend(c.get("components") or [])
        lic = []
        for l in c.get("licenses") or []:
            inner = l.get("license") or {}
            lic.append(l.get("expression") or inner.get("id") or inner.get("name") or "NOASSERTION")
        name = "%s/%s" % (c["group"], c["name"]) if c.get("group") else c["name"]
        out.append(Component(name, str(c.get("version", "")), c.get("purl"), tuple(lic)))
    return out


def _spdx(doc) -> List[Component]:
    out = []
    for p in doc.get("packages") or []:
        purl = next((r["referenceLocator"] for r in p.get("externalRefs") or [] if r.get("referenceType") == "purl"), None)
        lic = p.get("licenseConcluded")
        if lic in (None, "NOASSERTION"):
            lic = p.get("licenseDeclared")
        out.append(Component(p["name"], str(p.get("versionInfo", "")), purl, (lic,) if lic else ()))
    return out


def load(doc) -> List[Component]:
    if doc.get("bomFormat") == "CycloneDX":
        return _cyclonedx(doc)
    if str(doc.get("spdxVersion", "")).startswith("SPDX-2"):
        return _spdx(doc)
    raise UnknownFormat("neither CycloneDX nor SPDX 2")


def versions(components) -> Dict[str, str]:
    return {c.name: c.version for c in components}
