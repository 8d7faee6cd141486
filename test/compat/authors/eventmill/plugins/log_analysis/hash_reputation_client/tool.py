"""Looks hashes up at a reputation service (GET {base_url}/v1/files/{hash})."""
from __future__ import annotations
import importlib.util, os, re, sys
from urllib.error import URLError
from urllib.parse import quote
from framework.plugins.protocol import ToolResult, ValidationResult

_s = importlib.util.spec_from_file_location(__name__ + "_http", os.path.join(os.path.dirname(__file__), "http.py"))
_http = importlib.util.module_from_spec(_s); sys.modules[_s.name] = _http; _s.loader.exec_module(_http)

HASH = re.compile(r"^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})$")


class HashReputationClient:
    def __init__(self): self._cache: dict[tuple[str, str], dict] = {}

    def metadata(self): return {"tool_name": "hash_reputation_client", "version": "0.4.0", "cached": len(self._cache)}

    @staticmethod
    def _hashes(p):
        h = p.get("hashes")
        return [x.strip().lower() for x in (h.split(",") if isinstance(h, str) else h or [])]

    def validate_inputs(self, payload):
        hs = self._hashes(payload)
        errs = [f"not a hash: {h}" for h in hs if not HASH.match(h)]
        if not hs: errs.append("hashes is required")
        if not str(payload.get("base_url", "http://")).startswith(("http://", "https://")): errs.append("base_url must be http(s)")
        return ValidationResult(ok=not errs, errors=errs or None)

    def execute(self, payload, context):
        base = payload.get("base_url") or (getattr(context, "config", None) or {}).get("reputation_url")
        if not base:
            return ToolResult(ok=False, error_code="MISSING_PARAM", message="base_url, or reputation_url in the configuration")
        verdicts, unknown = {}, []
        for h in self._hashes(payload):
            if (base, h) not in self._cache:
                try:
                    self._cache[base, h] = _http.get_json(f"{base.rstrip('/')}/v1/files/{quote(h)}", {"Accept": "application/json"})
                except _http.ApiError as exc:
                    if exc.status == 404:
                        unknown.append(h); continue
                    return ToolResult(ok=False, error_code="EXECUTION_ERROR", message=str(exc), details={"hash": h, "status": exc.status})
                except (URLError, TimeoutError) as exc:
                    return ToolResult(ok=False, error_code="EXECUTION_ERROR", message=f"service not reachable: {exc}")
            d = self._cache[base, h]
            verdicts[h] = {"malicious": d.get("malicious", 0), "total": d.get("total", 0), "name": d.get("name")}
        return ToolResult(ok=True, result={"verdicts": verdicts, "unknown": unknown, "malicious": sorted(h for h, v in verdicts.items() if v["malicious"] > 0)})

    def summarize_for_llm(self, result):
        r = result.result
        return f"{len(r['verdicts'])} hashes known, {len(r['unknown'])} unknown, malicious: {', '.join(r['malicious']) or 'none'}"
