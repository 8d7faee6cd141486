"""Checks an expense report; submitting one is an action."""
from __future__ import annotations

import hashlib
import json
from datetime import date
from enum import Enum
from typing import Any, Dict, List, NamedTuple, Optional

from shu_plugin_sdk import PluginResult


class Level(str, Enum):
    INFO = "info"
    WARN = "warn"
    BLOCK = "block"


class Finding(NamedTuple):
    rule: str
    level: Level
    line: Optional[int]
    text: str

    def out(self) -> Dict[str, Any]:
        return {"rule": self.rule, "level": self.level.value, "line": self.line, "text": self.text}


LIMITS = {"meal": 60.0, "hotel": 220.0, "taxi": 80.0, "other": 150.0}
RULES: Dict[str, str] = {}


def rule(name, text):
    def deco(fn):
        RULES[name] = text
        fn.rule_name = name
        CHECKS.append(fn)
        return fn
    return deco


CHECKS: List[Any] = []


@rule("limit", "A line may not exceed the limit of its category.")
def over_limit(report):
    for n, l in enumerate(report["lines"]):
        cap = LIMITS[l["category"]]
        if l["amount"] > cap:
            yield Finding("limit", Level.BLOCK, n, "%.2f exceeds %.2f for %s" % (l["amount"], cap, l["category"]))


@rule("receipt", "Lines over 25 need a receipt.")
def receipts(report):
    for n, l in enumerate(report["lines"]):
        if l["amount"] > 25 and not l.get("receipt"):
            yield Finding("receipt", Level.WARN, n, "receipt missing")


@rule("duplicate", "The same day, category and amount twice looks like a duplicate.")
def duplicates(report):
    seen = {}
    for n, l in enumerate(report["lines"]):
        k = (l["day"], l["category"], l["amount"])
        if k in seen:
            yield Finding("duplicate", Level.WARN, n, "same as line %d" % seen[k])
        seen.setdefault(k, n)


@rule("weekend", "Weekend meals are reported.")
def weekend(report):
    for n, l in enumerate(report["lines"]):
        if l["category"] == "meal" and date.fromisoformat(l["day"]).weekday() >= 5:
            yield Finding("weekend", Level.INFO, n, "weekend")


LINE = {"type": "object", "required": ["day", "category", "amount"], "additionalProperties": False, "properties": {
    "day": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}, "category": {"enum": list(LIMITS)},
    "amount": {"type": "number", "exclusiveMinimum": 0}, "receipt": {"type": ["string", "null"]}}}
REPORT = {"type": "object", "required": ["employee", "lines"], "properties": {
    "employee": {"type": "string"}, "lines": {"type": "array", "minItems": 1, "items": LINE}}}


def examine(report):
    return [f for check in CHECKS for f in check(report)]


class Plugin:
    name = "expense_policy"
    version = "1.0.0"

    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["check", "explain"]}, "report": REPORT, "rule": {"type": "string"}}, "required": ["op"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {
            "verdict": {"enum": ["accepted", "review", "refused"]},
            "findings": {"type": "array", "items": {"type": "object", "required": ["rule", "level"]}},
            "rules": {"type": "object", "additionalProperties": {"type": "string"}}}}

    @staticmethod
    def verdict(findings):
        levels = {f.level for f in findings}
        return "refused" if Level.BLOCK in levels else "review" if Level.WARN in levels else "accepted"

    async def execute(self, params, context, host):
        if params["op"] == "explain":
            if params.get("rule") and params["rule"] not in RULES:
                return PluginResult.err("no rule %s" % params["rule"], code="unknown_rule", details={"rules": sorted(RULES)})
            return PluginResult.ok({"rules": {k: v for k, v in RULES.items() if params.get("rule") in (None, k)}})
        if not params.get("report"):
            return PluginResult.err("report is missing", code="missing_report")
        try:
            findings = examine(params["report"])
        except ValueError as exc:
            return PluginResult.err(str(exc), code="bad_date")
        return PluginResult.ok({"verdict": self.verdict(findings), "findings": [f.out() for f in findings],
                                "sum": round(sum(l["amount"] for l in params["report"]["lines"]), 2)})

    async def list_actions(self):
        return [{"name": "submit", "description": "Hands the report in", "params_schema": {"type": "object", "required": ["report"], "properties": {"report": REPORT}},
                 "required_scopes": [], "requires_approval": True}]

    async def perform_action(self, name, args, context, host):
        if name != "submit":
            return {"status": "error", "error": {"code": "unknown_action", "message": name}}
        key = context.get("idempotency_key") or hashlib.sha1(json.dumps(args, sort_keys=True).encode()).hexdigest()
        action_id = "exp-" + hashlib.sha1(key.encode()).hexdigest()[:10]
        findings = examine(args["report"])
        if self.verdict(findings) == "refused":
            return {"status": "error", "action_id": action_id, "error": {"code": "policy_refused", "message": findings[0].text}}
        if not (context.get("approved") or context.get("approval")):
            return {"status": "pending_approval", "action_id": action_id, "preview": {"employee": args["report"]["employee"], "warnings": len(findings)},
                    "diagnostics": [f.text for f in findings]}
        known = await host.storage.get(action_id)
        if known is None:
            known = {"number": action_id.upper(), "employee": args["report"]["employee"]}
            await host.storage.put(action_id, known)
        return {"status": "ok", "action_id": action_id, "result": known}
