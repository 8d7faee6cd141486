"""subnet_consolidator: collapse addresses into the fewest CIDR blocks. No artifacts needed."""
import ipaddress
from framework.plugins.protocol import ToolResult, ValidationResult


class SubnetConsolidator:
    def metadata(self):
        return {"tool_name": "subnet_consolidator", "version": "1.0.0"}

    def _items(self, payload):
        a = payload.get("addresses")
        if isinstance(a, str):
            a = a.replace(",", " ").split()
        return a

    def validate_inputs(self, payload):
        items = self._items(payload)
        if not isinstance(items, list) or not items:
            return ValidationResult(ok=False, errors=["addresses: non-empty list or comma separated text"])
        if len(items) > 10000:
            return ValidationResult(ok=False, errors=["addresses: at most 10000"])
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        v4, v6, bad = [], [], []
        for item in self._items(payload):
            try:
                if "-" in item:
                    lo, hi = (ipaddress.ip_address(x.strip()) for x in item.split("-", 1))
                    nets = list(ipaddress.summarize_address_range(lo, hi))
                else:
                    nets = [ipaddress.ip_network(item, strict=False)]
            except (ValueError, TypeError):
                bad.append(item)
                continue
            for n in nets:
                (v4 if n.version == 4 else v6).append(n)
        strict = str(payload.get("strict", False)).lower() == "true"
        if strict and bad:
            return ToolResult(ok=False, error_code="INPUT_VALIDATION_FAILED", message="invalid addresses", details={"invalid": bad})
        out = [*ipaddress.collapse_addresses(v4), *ipaddress.collapse_addresses(v6)]
        return ToolResult(ok=True, result={
            "networks": [str(n) for n in out],
            "address_count": sum(n.num_addresses for n in out if n.version == 4),
            "private": [str(n) for n in out if n.is_private],
            "invalid": bad,
        })

    def summarize_for_llm(self, result):
        r = result.result or {}
        nets = r.get("networks", [])
        return f"{len(nets)} networks: " + ", ".join(nets[:12]) + (" ..." if len(nets) > 12 else "") + (f" ({len(r['invalid'])} invalid entries)" if r.get("invalid") else "")
