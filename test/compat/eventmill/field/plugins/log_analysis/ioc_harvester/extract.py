"""Indicators in text."""

import re

PATTERNS = {
    "ipv4": re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
    "sha256": re.compile(r"\b[a-fA-F0-9]{64}\b"),
    "md5": re.compile(r"\b[a-fA-F0-9]{32}\b"),
    "technique": re.compile(r"\bT\d{4}(?:\.\d{3})?\b"),
    "domain": re.compile(r"\b(?:[a-z0-9-]{1,63}\.)+(?:com|net|org|io|ru|cn|info|example)\b", re.I),
}
REFANG = [("hxxp", "http"), ("[.]", "."), ("(.)", "."), ("[:]", ":")]


def refang(text):
    for old, new in REFANG:
        text = text.replace(old, new)
    return text


def plausible(kind, value):
    if kind == "ipv4":
        return all(int(part) < 256 for part in value.split("."))
    return True


def harvest(text):
    text = refang(text)
    found = {}
    for kind, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            value = match.group(0) if kind == "technique" else match.group(0).lower()
            if plausible(kind, value):
                found.setdefault(kind, {}).setdefault(value, 0)
                found[kind][value] += 1
    return found
