import re
from decimal import Decimal

AMOUNT = re.compile(r"(?P<n>\d{1,6}[.,]\d{2})\s*(?P<cur>EUR|USD|GBP|€|\$|£)?", re.I)
TOTAL = re.compile(r"^\s*(grand\s+)?(total|summe|amount due)\b", re.I)
SYMBOL = {"€": "EUR", "$": "USD", "£": "GBP"}
ITEM = re.compile(r"^(?P<what>[^\d].*?)\s+(?P<n>\d{1,6}[.,]\d{2})\s*$")


def money(text):
    return Decimal(text.replace(",", "."))


def parse(text):
    total, currency, items = None, None, []
    lines = [l.rstrip() for l in text.splitlines() if l.strip()]
    for line in lines[1:]:
        m = AMOUNT.search(line)
        if not m:
            continue
        cur = (m.group("cur") or "").upper()
        currency = currency or SYMBOL.get(cur, cur) or None
        if TOTAL.match(line):
            total = money(m.group("n"))
            continue
        im = ITEM.match(line)
        if im and total is None:
            items.append((im.group("what").strip(), money(im.group("n"))))
    return {"shop": lines[0].strip() if lines else None, "total": total, "currency": currency or "EUR", "items": items}
