"""Finds indicators in lines and keeps each once."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Tuple
from urllib.parse import urlsplit

from . import benign
from .refang import refang

TYPES = (
    "ipv4", "ipv6", "network", "domain", "url", "email", "md5", "sha1", "sha256", "sha512", "cve", "file_path", "registry_key", "technique",
)  # fmt: skip
FILTERS = ("private", "documentation", "version", "common", "file_name", "code")
MOST_INDICATORS = 50000
MOST_CONTEXTS = 3
CONTEXT_CHARS = 240
_WINDOW = 20000  # characters of a line looked at in one go; windows overlap
_OVERLAP = 2048

_HOST = r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.){1,12}[A-Za-z][A-Za-z0-9-]{1,62}"
_URL = re.compile(r"\b(?:https?|ftps?|sftp|ws|wss|tcp|udp|ldaps?|smb)://[^\s\"'<>\\^`{|}\x00-\x1f]{3,2000}", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[A-Za-z0-9_.+-]{1,64}@" + _HOST + r"(?![\w@])")
_IPV4 = re.compile(r"(?<![\w.\-])(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(/\d{1,2})?(?:(?![\w])(?!\.\d)|(?=:\d))")
_IPV6 = re.compile(r"(?<![\w:.])((?:[0-9A-Fa-f]{1,4}:){1,7}(?::|[0-9A-Fa-f]{1,4})(?::?[0-9A-Fa-f]{1,4}){0,6}|::(?:[0-9A-Fa-f]{1,4}:){0,6}[0-9A-Fa-f]{1,4})(/\d{1,3})?(?![\w:])")
_DOMAIN = re.compile(r"(?<![\w@.\-/\\%])(" + _HOST + r")(?![\w@\\-])(?!\.\w)")
_HASH = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{128}|[0-9A-Fa-f]{64}|[0-9A-Fa-f]{40}|[0-9A-Fa-f]{32})(?![0-9A-Za-z])")
_CVE = re.compile(r"\bCVE[-\u2010-\u2015](\d{4})[-\u2010-\u2015](\d{4,7})\b", re.IGNORECASE)
_TECHNIQUE = re.compile(r"(?<![\w.])T(1\d{3}|0\d{3})(?:[./](\d{3}))?(?![\w])(?!\.\d)")
_WINDOWS_PATH = re.compile(
    r"(?<![\w\\/])(?:[A-Za-z]:\\|%[A-Za-z_()0-9]{2,40}%\\|\\\\[\w.$-]{1,64}\\)(?:[^\\/:*?\"<>|\r\n\t,;]{1,128}\\){0,24}[^\\/:*?\"<>|\s,;()\[\]]{1,128}(?: [^\\/:*?\"<>|\s,;()\[\]]{1,60}\.[A-Za-z0-9]{1,5}\b)?"
)
_UNIX_PATH = re.compile(r"(?<![\w.:/~<-])(?:~|/(?:bin|boot|dev/shm|dev|etc|home|lib|lib64|media|mnt|opt|proc|private|root|run|sbin|srv|sys|tmp|usr|var|Library|Users|Applications|System))(?:/[\w.@%+=~,-]{1,128}){1,24}")
_REGISTRY = re.compile(
    r"(?<![\w\\])(?:HKEY_(?:LOCAL_MACHINE|CURRENT_USER|CLASSES_ROOT|USERS|CURRENT_CONFIG)|HK(?:LM|CU|CR|U|CC))(?::)?(?:\\[^\\\r\n\t\"'<>|,;()\[\]]{1,128}){1,24}",
    re.IGNORECASE,
)
_VERSION_BEFORE = re.compile(r"(?:\bv|\bver\.?|\bversions?|\brelease|\bbuild|\bupdate|\bpatch|\bfirmware|[A-Za-z]/|\b(?:before|through|prior to|up to|<=?|>=?))[\s:=]*$", re.IGNORECASE)
_CODE = re.compile(r"(?:[A-Z][a-z0-9]+[A-Za-z0-9]*\.)+[A-Z]?[A-Za-z]+$")
_HIVES = {"HKLM": "HKEY_LOCAL_MACHINE", "HKCU": "HKEY_CURRENT_USER", "HKCR": "HKEY_CLASSES_ROOT", "HKU": "HKEY_USERS", "HKCC": "HKEY_CURRENT_CONFIG"}
_HASHES = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
_DEFANGABLE = ("ipv4", "ipv6", "network", "domain", "url", "email")
_DIGIT_OR_MARK = re.compile(r"[0-9@.\\/:]")


class Hit(NamedTuple):
    """One place where an indicator stands."""

    type: str
    value: str
    filtered: str  # why it is none, or empty
    start: int


class Indicator:
    """An indicator and where it was seen."""

    __slots__ = ("type", "value", "count", "first_line", "defanged", "filtered", "contexts")

    def __init__(self, type: str, value: str, line: int) -> None:
        self.type = type
        self.value = value
        self.count = 0
        self.first_line = line
        self.defanged = False
        self.filtered = ""
        self.contexts: List[Dict[str, Any]] = []

    def shown(self, reason: bool = False) -> Dict[str, Any]:
        """The indicator in the answer, with the reason why it is taken for harmless."""
        answer: Dict[str, Any] = {
            "type": self.type,
            "value": self.value,
            "count": self.count,
            "first_line": self.first_line,
            "defanged": self.defanged,
            "contexts": self.contexts,
            "source": "text",
        }
        if reason:
            answer["reason"] = self.filtered
        return answer


class Collection:
    """The indicators of one document; feed it every line.

    What a filter takes for harmless goes to filtered(), unless the author
    defanged it somewhere: then it is meant as an indicator.
    """

    def __init__(self, types: FrozenSet[str], filters: FrozenSet[str]) -> None:
        self.overflow = 0
        self.lines = 0
        self._types = types
        self._filters = filters
        self._found: Dict[Tuple[str, str], Indicator] = {}

    def add_line(self, line: str) -> None:
        """Take the next line."""
        self.lines += 1
        if not _DIGIT_OR_MARK.search(line):
            return
        if len(line) <= _WINDOW:
            self._add(line)
            return
        for start in range(0, len(line), _WINDOW - _OVERLAP):  # an indicator in the overlap is counted twice, never lost
            self._add(line[start : start + _WINDOW])

    def _add(self, line: str) -> None:
        plain = refang(line)
        changed = plain != line
        meant = set()  # where defanged URLs start; their hosts start there too
        for hit in find(plain):
            if hit.type not in self._types:
                continue
            key = (hit.type, hit.value)
            found = self._found.get(key)
            if found is None:
                if len(self._found) >= MOST_INDICATORS:
                    self.overflow += 1
                    continue
                found = self._found[key] = Indicator(hit.type, hit.value, self.lines)
                found.filtered = hit.filtered
            found.count += 1
            if not hit.filtered and found.filtered:
                found.filtered = ""
            if changed and hit.type in _DEFANGABLE and (hit.start in meant or not _stands_in(hit, line)):
                found.defanged = True
                meant.add(hit.start)
            if len(found.contexts) < MOST_CONTEXTS and (not found.contexts or found.contexts[-1]["line"] != self.lines):
                found.contexts.append({"line": self.lines, "text": _context(plain, hit.start)})

    def _is_filtered(self, found: Indicator) -> bool:
        return bool(found.filtered) and found.filtered in self._filters and not found.defanged

    def indicators(self) -> List[Indicator]:
        """What is to be taken for an indicator, by type, then by where it first stands."""
        return sorted((f for f in self._found.values() if not self._is_filtered(f)), key=_order)

    def filtered(self) -> List[Indicator]:
        """What is not, with the reason."""
        return sorted((f for f in self._found.values() if self._is_filtered(f)), key=_order)


def _order(found: Indicator) -> Tuple[int, int, str]:
    return (TYPES.index(found.type), found.first_line, found.value)


def _stands_in(hit: Hit, line: str) -> bool:
    """Whether an indicator stands in the line as it was written, not only as it was meant."""
    return hit.value.lower() in line.lower()


def _context(line: str, at: int) -> str:
    start = max(0, min(at - CONTEXT_CHARS // 2, len(line) - CONTEXT_CHARS))
    return " ".join(line[start : start + CONTEXT_CHARS].split())


def find(line: str) -> Iterator[Hit]:
    """The indicators in a refanged line; hosts of URLs and e-mail addresses count as domains or addresses too."""
    taken: List[Tuple[int, int]] = []

    def free(start: int) -> bool:
        return not any(a <= start < b for a, b in taken)

    if "://" in line:
        for match in _URL.finditer(line):
            url = _trimmed(match.group())
            hits = list(_of_url(url, match.start()))
            if hits:
                taken.append((match.start(), match.start() + len(url)))
                yield from hits
    if "@" in line:
        for match in _EMAIL.finditer(line):
            name, _, host = match.group().rpartition("@")
            host = host.lower()
            reason = benign.domain(host)
            if free(match.start()) and (reason or benign.is_tld(host.rpartition(".")[2])):
                taken.append(match.span())
                # A mailbox at a provider that everybody uses may well be an attacker's; the provider is not.
                yield Hit("email", name.lower() + "@" + host, "" if reason == "common" else reason, match.start())
                yield Hit("domain", host, reason, match.start())
    if "\\" in line:
        for match in _REGISTRY.finditer(line):
            hive, _, rest = match.group().replace(":\\", "\\", 1).partition("\\")
            value = _HIVES.get(hive.upper(), hive.upper()) + "\\" + _key_end(rest)
            taken.append(match.span())
            yield Hit("registry_key", value, "", match.start())
        for match in _WINDOWS_PATH.finditer(line):
            if free(match.start()):
                value = match.group().rstrip(".")
                taken.append((match.start(), match.start() + len(value)))
                yield Hit("file_path", value, "", match.start())
    if "/" in line:
        for match in _UNIX_PATH.finditer(line):
            if free(match.start()):
                value = match.group().rstrip(".,")
                taken.append((match.start(), match.start() + len(value)))
                yield Hit("file_path", value, "", match.start())
    for match in _HASH.finditer(line):
        value = match.group().lower()
        if free(match.start()) and len(set(value)) > 4 and not value.isdigit():
            yield Hit(_HASHES[len(value)], value, "", match.start())
    for match in _CVE.finditer(line):
        yield Hit("cve", "CVE-%s-%s" % match.groups(), "", match.start())
    for match in _TECHNIQUE.finditer(line):
        number, sub = match.groups()
        yield Hit("technique", "T" + number + ("." + sub if sub else ""), "", match.start())
    if "." in line:
        for match in _IPV4.finditer(line):
            if free(match.start()):
                yield from _of_address(match.group(1), match.group(2), line, match.start())
                taken.append(match.span())
    if ":" in line:
        for match in _IPV6.finditer(line):
            if free(match.start()):
                yield from _of_address(match.group(1), match.group(2), line, match.start())
    if "." in line:
        for match in _DOMAIN.finditer(line):
            if free(match.start()):
                yield from _of_domain(match.group(1), line, match.start())


def _trimmed(url: str) -> str:
    """A URL without the punctuation of the sentence around it."""
    url = url.rstrip(".,;:!?*_'\"")
    while url[-1:] in (")", "]") and url.count(url[-1]) > url.count("(" if url[-1] == ")" else "["):
        url = url[:-1].rstrip(".,;:!?*_'\"")
    return url


def _of_url(url: str, start: int) -> Iterator[Hit]:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return
    if not host:
        return
    scheme = parts.scheme.lower()
    value = scheme + url[len(parts.scheme) :]
    at = value.lower().find(host)
    value = value[:at] + host + value[at + len(host) :]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if "." not in host or not re.fullmatch(_HOST, host):
            return
        tld = host.rpartition(".")[2]
        reason = benign.domain(host)
        if not reason and not benign.is_tld(tld) and not tld.startswith("xn--"):
            return
        yield Hit("url", value, reason, start)
        yield Hit("domain", host, reason, start)
        return
    reason = benign.address(str(address))
    yield Hit("url", value, reason, start)
    yield Hit("ipv4" if address.version == 4 else "ipv6", str(address), reason, start)


def _of_address(text: str, prefix: str, line: str, start: int) -> Iterator[Hit]:
    if ":" not in text:
        octets = text.split(".")
        if any(int(o) > 255 or (len(o) > 1 and o[0] == "0") for o in octets):
            return
    elif text.count(":") < 2 or not any(c.isdigit() for c in text):  # names of code are joined with colons too
        return
    try:
        address = ipaddress.ip_address(text)
        whole = address.max_prefixlen
        bits = int(prefix[1:]) if prefix else whole
        if bits > whole:
            return
        network = ipaddress.ip_network("%s/%d" % (text, bits), strict=False)
    except ValueError:
        return
    reason = benign.address(str(address))
    if ":" not in text and _VERSION_BEFORE.search(line[max(0, start - 24) : start]):
        reason = "version"
    if bits < whole:
        yield Hit("network", str(network), reason, start)
    else:
        yield Hit("ipv4" if address.version == 4 else "ipv6", str(address), reason, start)


def _of_domain(text: str, line: str, start: int) -> Iterator[Hit]:
    name = text.lower()
    tld = name.rpartition(".")[2]
    reason = benign.domain(name)
    if not reason and not benign.is_tld(tld) and not tld.startswith("xn--"):
        return
    if len(name) > 253:
        return
    if not reason:
        if benign.is_file_ending(tld) and (name.count(".") == 1 or "_" in name):
            reason = "file_name"
        elif text != name and not text.isupper() and _CODE.match(text) or line[start + len(text) : start + len(text) + 1] == "(":
            reason = "code"
    yield Hit("domain", name, reason, start)


def _key_end(key: str) -> str:
    """A registry key without the sentence that goes on after it: its last part ends where words follow that start small."""
    head, bar, last = key.rpartition("\\")
    words = last.split(" ")
    kept = words[:1]
    for word in words[1:]:
        if not word[:1].isupper() and not word[:1].isdigit():
            break
        kept.append(word)
    return head + bar + " ".join(kept).rstrip(".: ")
