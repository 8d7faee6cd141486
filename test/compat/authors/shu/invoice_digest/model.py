from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation, ROUND_HALF_UP
from typing import List


class BadInvoice(Exception):
    def __init__(self, number, why):
        super().__init__("%s: %s" % (number, why))
        self.number, self.why = number, why


@dataclass
class Line:
    text: str
    quantity: Decimal
    unit: Decimal
    vat: Decimal

    @property
    def net(self):
        return (self.quantity * self.unit).quantize(Decimal("0.01"), ROUND_HALF_UP)

    @property
    def tax(self):
        return (self.net * self.vat / 100).quantize(Decimal("0.01"), ROUND_HALF_UP)


@dataclass
class Invoice:
    number: str
    customer: str
    currency: str
    lines: List[Line] = field(default_factory=list)

    @property
    def net(self):
        return sum((l.net for l in self.lines), Decimal("0.00"))

    @property
    def gross(self):
        return self.net + sum((l.tax for l in self.lines), Decimal("0.00"))


def load(raw):
    number = raw.get("number", "?")
    try:
        lines = [Line(l.get("text", ""), Decimal(str(l["quantity"])), Decimal(str(l["unit_price"])), Decimal(str(l.get("vat", 0))))
                 for l in raw["lines"]]
    except KeyError as exc:
        raise BadInvoice(number, "missing %s" % exc) from None
    except InvalidOperation:
        raise BadInvoice(number, "not a number") from None
    if not lines:
        raise BadInvoice(number, "no lines")
    return Invoice(number, raw.get("customer") or "unknown", (raw.get("currency") or "EUR").upper(), lines)
