from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional

from shu_plugin_sdk import (HttpRequestFailed, NonRetryableError, PluginResult, RetryableError, RetryConfig, with_retry)

FAST = RetryConfig(max_retries=2, base_delay=0.01, max_delay=0.05, backoff_factor=2.0)


@dataclass
class Sample:
    service: str
    state: str
    code: Optional[int]
    at: float
    note: str = ""


class Prober:
    def __init__(self, host):
        self.host = host
        self.calls = 0

    @with_retry(FAST)
    async def probe(self, url: str, expect: Optional[str]) -> int:
        self.calls += 1
        try:
            r = await self.host.http.fetch("GET", url, headers={"Cache-Control": "no-cache"}, timeout=5)
        except HttpRequestFailed as exc:
            if exc.is_retryable:
                raise RetryableError(str(exc)) from exc
            raise NonRetryableError(exc.error_category) from exc
        if expect:
            text = r["body"] if isinstance(r["body"], str) else repr(r["body"])
            if expect not in text:
                raise NonRetryableError("content")
        return r["status_code"]


def uptime(samples: List[Dict[str, Any]]) -> Optional[float]:
    if not samples:
        return None
    return round(100.0 * sum(1 for s in samples if s["state"] == "up") / len(samples), 2)


class StatusMonitor:
    name = "status_monitor"
    version = "2.1.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["check", "history"], "default": "check"},
            "services": {"type": "array", "items": {"type": "object", "required": ["name", "url"], "properties": {
                "name": {"type": "string"}, "url": {"type": "string"}, "expect": {"type": ["string", "null"]}}}},
            "keep": {"type": "integer", "minimum": 1, "maximum": 1000},
            "debug": {"type": "boolean"}}, "required": ["op"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {
            "up": {"type": "integer"}, "down": {"type": "integer"},
            "services": {"type": "array", "items": {"type": "object", "required": ["service", "state"], "properties": {
                "state": {"enum": ["up", "down", "degraded"]}}}},
            "uptime": {"type": "object"}}}

    async def execute(self, params, context, host):
        history = await host.storage.get("history", namespace="status") or {}
        if params["op"] == "history":
            return PluginResult.ok({"uptime": {k: uptime(v) for k, v in sorted(history.items())}, "samples": sum(len(v) for v in history.values())})
        services = params.get("services") or []
        if not services:
            return PluginResult.err("no services to check", code="no_services")
        out, notes, keep = [], [], params.get("keep") or 100
        for svc in services:
            p = Prober(host)
            try:
                code = await p.probe(svc["url"], svc.get("expect"))
                state, note = ("up", "") if p.calls == 1 else ("degraded", "%d tries" % p.calls)
            except RetryableError as exc:
                code, state, note = None, "down", str(exc)
            except NonRetryableError as exc:
                code, state, note = None, "down", str(exc)
            s = asdict(Sample(svc["name"], state, code, round(time.time(), 3), note))
            s["tries"] = p.calls
            out.append(s)
            if params.get("debug"):
                notes.append("%s: %d tries" % (svc["name"], p.calls))
            history.setdefault(svc["name"], []).append({"state": state, "at": s["at"]})
            del history[svc["name"]][:-keep]
        await host.storage.put("history", history, namespace="status")
        return PluginResult.ok({"up": sum(s["state"] != "down" for s in out), "down": sum(s["state"] == "down" for s in out), "services": out},
                               diagnostics=notes)
