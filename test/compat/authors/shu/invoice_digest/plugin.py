from collections import defaultdict
from decimal import Decimal

from .model import BadInvoice, load


class _R:
    """status / data / error, nothing else"""

    def __init__(self, status, data=None, error=None):
        self.status = status
        self.data = data
        self.error = error


def ok(**data):
    return _R("success", data)


def fail(code, message, **more):
    return _R("error", None, dict(code=code, message=message, **more))


class InvoiceDigest:
    name = "invoice_digest"
    version = "2.3.1"

    def get_schema(self):
        return {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["digest", "totals", "raw"], "default": "digest"},
                "invoices": {"type": "array", "minItems": 1, "items": {
                    "type": "object", "required": ["number", "lines"], "properties": {
                        "number": {"type": "string"}, "currency": {"type": "string", "minLength": 3, "maxLength": 3},
                        "lines": {"type": "array"}}}},
                "kb_id": {"type": ["string", "null"]},
                "period": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
            },
            "required": ["op", "invoices"],
        }

    def get_output_schema(self):
        return {"type": "object", "properties": {
            "totals": {"type": "object", "additionalProperties": {"type": "object", "properties": {"gross": {"type": "string"}}}},
            "report": {"type": "string"}}, "required": ["totals"]}

    async def execute(self, params, context, host):
        good, bad = [], []
        for raw in params["invoices"]:
            try:
                good.append(load(raw))
            except BadInvoice as exc:
                bad.append({"id": exc.number, "reason": "other", "details": {"why": exc.why}})
        if not good:
            return fail("no_valid_invoice", "every invoice was refused", refused=bad)
        sums = defaultdict(lambda: {"count": 0, "net": Decimal(0), "gross": Decimal(0)})
        for inv in good:
            s = sums[inv.currency]
            s["count"] += 1
            s["net"] += inv.net
            s["gross"] += inv.gross
        if params["op"] == "raw":
            # kept for an old dashboard; forgets the totals
            return ok(numbers=[i.number for i in good])
        totals = {c: {"count": s["count"], "net": str(s["net"]), "gross": str(s["gross"])} for c, s in sums.items()}
        if params["op"] == "totals":
            return ok(totals=totals, refused=bad)
        period = params.get("period") or "undated"
        lines = ["Invoice digest %s" % period, ""]
        for cur in sorted(totals):
            lines.append("%s: %d invoices, %s gross" % (cur, totals[cur]["count"], totals[cur]["gross"]))
        by_customer = defaultdict(Decimal)
        for inv in good:
            by_customer[(inv.customer, inv.currency)] += inv.gross
        lines += ["", "Largest customers:"]
        for (cust, cur), amount in sorted(by_customer.items(), key=lambda kv: -kv[1])[:5]:
            lines.append("- %s %s %s" % (cust, amount, cur))
        report = "\n".join(lines)
        stored = False
        if params.get("kb_id"):
            await host.kb.ingest_text(params["kb_id"], title=lines[0], content=report, source_id="digest:" + period)
            stored = True
        return ok(totals=totals, report=report, stored=stored, refused=bad)
