"""Which threats a system has, that controls lower them, and that a wrong description is refused by its place."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import time
import unittest
from typing import Any, Dict, List, Set, Tuple

from framework.plugins.protocol import ToolResult
from threats.model import label
from threats.stride import RULES
from threats.system import CONTROLS

from support import HERE, ToolCase
from tool import ThreatModelBuilder

with open(os.path.join(HERE, "examples", "shop.json"), encoding="utf-8") as file:
    SHOP: Dict[str, Any] = json.load(file)


def system(seed: int, components: int = 12, flows: int = 25) -> Dict[str, Any]:
    """A system made by chance."""
    rng = random.Random(seed)
    zones = [{"id": "z%d" % i, "trust": rng.randrange(11)} for i in range(4)]
    parts = []
    for i in range(components):
        part: Dict[str, Any] = {"id": "c%d" % i, "type": rng.choice(("external", "process", "process", "store")), "criticality": rng.choice(("low", "medium", "high", "critical"))}
        if rng.random() < 0.8:
            part["zone"] = rng.choice(zones)["id"]
        if rng.random() < 0.7:
            part["controls"] = rng.sample(CONTROLS, rng.randrange(6))
        part["data"] = rng.sample(("public", "internal", "confidential", "secret"), rng.randrange(3))
        parts.append(part)
    links = []
    for i in range(flows):
        link: Dict[str, Any] = {"id": "f%d" % i, "from": rng.choice(parts)["id"], "to": rng.choice(parts)["id"], "controls": rng.sample(CONTROLS, rng.randrange(4))}
        for name in ("authenticated", "encrypted"):
            if rng.random() < 0.6:
                link[name] = rng.random() < 0.5
        link["data"] = rng.sample(("public", "internal", "confidential", "secret"), rng.randrange(3))
        links.append(link)
    return {"name": "seed %d" % seed, "zones": zones, "components": parts, "flows": links}


class Builder(ToolCase):
    tool = ThreatModelBuilder()

    def build(self, model: Dict[str, Any], **payload: Any) -> Dict[str, Any]:
        """The result for a system."""
        result = self.tool.execute(dict({"limit": 500}, model=model, **payload), self.context(reference={"mitre_techniques": {"T1190": {"name": "Exploit Public-Facing Application", "tactics": ["Initial Access"]}}}))
        self.assertTrue(result.ok, result.message)
        assert result.result is not None
        self.assertLess(len(self.tool.summarize_for_llm(result)), 1000)
        return dict(result.result)

    def test_the_shop(self) -> None:
        result = self.build(SHOP)
        ids = {threat["id"]: threat for threat in result["threats"]}
        read = ids["order:flow-read"]
        self.assertEqual((read["category"], read["likelihood"], read["impact"], read["level"], read["controls_missing"]), ("information_disclosure", 3, 4, "high", ["tls", "mutual_tls", "segmentation"]))
        self.assertNotIn("browse:flow-read", ids)  # encrypted
        self.assertNotIn("browse:flow-spoofed", ids)  # authenticated
        self.assertIn("browse:flow-credentials", ids)  # but by password
        self.assertEqual((result["entries"], result["targets"], result["counts"]["crossing"]), (["buyer"], ["orders", "db"], 2))
        self.assertEqual(result["assumptions"], ["flow order: nothing is said of authenticated; taken as not"])
        self.assertIn({"id": "T1190", "name": "Exploit Public-Facing Application", "tactics": ["Initial Access"]}, result["techniques"])
        self.assertEqual(sum(row["threats"] for row in result["matrix"]), len(ids))

    def test_every_rule_applies_somewhere_and_not_everywhere(self) -> None:
        seen: Dict[str, List[int]] = {rule.id: [0, 0] for rule in RULES}
        for seed in range(30):
            model = system(seed)
            found = {(t["rule"], t["element"]) for t in self.build(model)["threats"]}
            for rule in RULES:
                of = model["flows"] if rule.of == "flow" else [c for c in model["components"] if c["type"] == rule.of]
                for element in of:
                    seen[rule.id][(rule.id, element["id"]) in found] += 1
        self.assertEqual([id for id, (without, having) in seen.items() if not without or not having], [])

    def test_beside_a_second_reckoning(self) -> None:
        for seed in range(25):
            model = system(seed)
            got = {(t["element"], t["rule"]): (t["likelihood"], t["impact"]) for t in self.build(model)["threats"]}
            for key, numbers in second(model).items():
                self.assertEqual(got.get(key), numbers, (seed, key))
            simple = {rule for _, rule in second(model)}
            self.assertEqual({key for key in got if key[1] in simple}, set(second(model)))

    def test_a_control_never_raises_a_risk(self) -> None:
        rng = random.Random(7)
        for seed in range(15):
            model = system(seed)
            before = {t["id"]: t["risk"] for t in self.build(model)["threats"]}
            more = copy.deepcopy(model)
            for part in more["components"] + more["flows"]:
                part["controls"] = sorted(set(part.get("controls", [])) | {rng.choice(CONTROLS)})
            for threat in self.build(more)["threats"]:
                if threat["id"] in before:
                    self.assertLessEqual(threat["risk"], before[threat["id"]], threat["id"])
                else:  # what a login brings with it
                    self.assertIn(threat["rule"], ("flow-credentials", "process-exceeds", "process-denies"))

    def test_the_order_of_a_description_does_not_matter(self) -> None:
        model = system(3)
        mixed = copy.deepcopy(model)
        for name in ("zones", "components", "flows"):
            random.Random(1).shuffle(mixed[name])
        self.assertEqual(sorted(t["id"] + str(t["risk"]) for t in self.build(model)["threats"]), sorted(t["id"] + str(t["risk"]) for t in self.build(mixed)["threats"]))

    def test_a_wrong_description_is_refused_by_its_place(self) -> None:
        for change, said in (
            (lambda m: m["flows"][0].update(to="nowhere"), "model.flows[0].to: there is no component nowhere"),
            (lambda m: m["components"][1].update(zone="mars"), "model.components[1].zone: there is no zone mars"),
            (lambda m: m["components"].append(dict(m["components"][0])), "model.components[4].id: buyer is there twice"),
            (lambda m: m["zones"][0].update(trust=11), "model.zones[0].trust"),
            (lambda m: m["components"][2].update(type="robot"), "model.components[2].type must be one of"),
            (lambda m: m["components"][2].update(controls=["prayer"]), "model.components[2].controls: prayer"),
            (lambda m: m["flows"][1].update(encrypted="yes"), "model.flows[1].encrypted"),
            (lambda m: m.update(components=[]), "at least one component"),
            (lambda m: m.update(threats=[]), "model.threats is not known"),
            (lambda m: m.update(flows=[7]), "model.flows[0] must be an object"),
            (lambda m: m["components"][0].update(id="a b"), "model.components[0].id"),
        ):
            model = copy.deepcopy(SHOP)
            change(model)
            validation = self.tool.validate_inputs({"model": model})
            self.assertFalse(validation.ok)
            self.assertTrue(any(said in error for error in validation.errors or []), (said, validation.errors))
            refused = self.refused("INPUT_VALIDATION_FAILED", {"file_path": self.file(json.dumps(model), "m.json")})
            self.assertTrue(refused.details["errors"])

    def test_files_that_are_no_description(self) -> None:
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file("{", "m.json")})
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file("[" * 100000, "m.json")})
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(b" " * ((8 << 20) + 1), "m.json")})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such.json"})
        self.refused("INPUT_VALIDATION_FAILED", {"file_path": self.file("[]", "m.json")})

    def test_the_model_can_be_built_again(self) -> None:
        first = self.build(SHOP)
        (registered,) = self.registered
        self.assertEqual((registered["type"], registered["metadata"]["threats"]), ("risk_model", len(first["threats"])))
        (document,) = registered["lines"]
        self.assertEqual(document["threats"], first["threats"])
        self.assertEqual([(e["from"], e["to"]) for e in document["graph"]["edges"]], [("buyer", "web"), ("web", "orders"), ("orders", "db")])
        for edge in document["graph"]["edges"]:
            self.assertTrue(0 < edge["probability"] < 1 and edge["techniques"] and set(edge["threats"]) <= {t["id"] for t in first["threats"]})
        again = self.tool.execute({"file_path": self.file(json.dumps(document), "again.json"), "limit": 500}, self.context())
        assert again.result is not None
        self.assertEqual([t["id"] for t in again.result["threats"]], [t["id"] for t in first["threats"]])

    def test_names_cannot_change_the_diagram(self) -> None:
        model = copy.deepcopy(SHOP)
        evil = 'x"] --> y["<script>alert(1)</script>`%%{init}%%`'
        model["components"][1]["name"] = evil
        diagram = self.build(model)["diagram"]
        line = next(line for line in diagram.splitlines() if "n1(" in line)
        self.assertEqual(line, '    n1("%s")' % label(evil))
        self.assertFalse(re.search(r'["<>`\[\]{}]', label(evil)))
        self.assertEqual(diagram.count("-->"), 3)

    def test_a_large_system_is_quick(self) -> None:
        begin = time.monotonic()
        result = self.build(system(1, 500, 2000))
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual((len(result["threats"]), result["diagram"]), (500, None))
        self.assertGreater(result["counts"]["threats"], 2000)

    def test_a_system_without_threats(self) -> None:
        result = self.build({"components": [{"id": "alone", "type": "process", "criticality": "low"}]})
        self.assertEqual(result["counts"]["threats"], 0)
        self.assertIn("component alone: no flow begins or ends there", result["assumptions"])
        self.assertIn("none", self.tool.summarize_for_llm(ToolResult(ok=True, result=result)))


def second(model: Dict[str, Any]) -> Dict[Tuple[str, str], Tuple[int, int]]:
    """Likelihood and impact of the threats of four rules, reckoned once more from the description alone."""
    weight = {"public": 1, "internal": 2, "confidential": 4, "secret": 5, "low": 1, "medium": 2, "high": 4, "critical": 5}
    trust = {z["id"]: z["trust"] for z in model["zones"]}
    part = {c["id"]: c for c in model["components"]}

    def trusted(id: str) -> int:
        return trust[part[id]["zone"]] if "zone" in part[id] else {"external": 0}.get(part[id]["type"], 5)

    out: Dict[Tuple[str, str], Tuple[int, int]] = {}
    for f in model["flows"]:
        a, b = f["from"], f["to"]
        has: Set[str] = set(f["controls"])
        encrypted = f.get("encrypted") is True or bool(has & {"tls", "mutual_tls"})
        authenticated = f.get("authenticated") is True or bool(has & {"authentication", "mfa", "mutual_tls"})
        crosses = part[a].get("zone") != part[b].get("zone") or trusted(a) != trusted(b)
        likely = 5 if trusted(a) == 0 else 4 if trusted(a) < 3 else 3 if crosses else 2
        data = [weight[d] for d in f["data"]]
        both = has | set(part[b].get("controls", []))
        if not encrypted and max(data, default=0) > 1:
            out[f["id"], "flow-read"] = (likely, max(1, max(data) - ("segmentation" in has)))
        if not authenticated and part[b]["type"] != "external":
            strong = len(both & {"authentication", "mutual_tls", "signing"})
            out[f["id"], "flow-spoofed"] = (max(1, likely - strong), max([weight[part[b]["criticality"]]] + data))
    for c in model["components"]:
        writers = [f["from"] for f in model["flows"] if f["to"] == c["id"]]
        low = min([trusted(w) for w in writers], default=trusted(c["id"]))
        reach = 5 if low == 0 else 4 if low < 3 else 3 if low < trusted(c["id"]) else 2 if writers else 1
        has = set(c.get("controls", []))
        held = [weight[d] for d in c["data"]]
        if c["type"] == "store" and writers:
            less = bool(has & {"backups", "redundancy", "least_privilege"})
            out[c["id"], "store-destroyed"] = (max(1, reach - 1), max(1, weight[c["criticality"]] - less))
        if c["type"] == "store" and max(held, default=0) > 1:
            less = bool(has & {"encryption_at_rest", "least_privilege"})
            out[c["id"], "store-read"] = (max(1, reach - ("authorization" in has)), max(1, max([weight[c["criticality"]]] + held) - less))
    return out


if __name__ == "__main__":
    unittest.main()
