"""What is known before the log is read: indicators of compromise and the assets that it may name."""

from __future__ import annotations

import csv
import ipaddress
import json
import re
from functools import lru_cache
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from .tooling import Refused

MOST_INDICATORS = 50_000
MOST_PHRASES = 2_000  # indicators that are no single token, such as paths
MOST_ASSETS = 20_000
_REMEMBERED = 100_000  # tokens whose answer is kept
_MOST_FILE = 64 << 20
LEVELS = {"low": 1, "medium": 2, "high": 3, "critical": 4}
_TOKENS = (
    r"https?://[^\s\"'<>\\]{3,2000}",
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w])(?!\.\d)",
    r"(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])",
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+",
    r"(?<![0-9a-z])[0-9a-f]{32,128}(?![0-9a-z])",
)
_NAME = r"[a-z0-9_](?:[a-z0-9_-]{0,62}[a-z0-9_])?(?:\.[a-z0-9_-]{1,63})"
_WORD, _DOTTED = _NAME + "*", _NAME + "+"  # a name of one label, as machines have, costs a look at every word
_SIMPLE = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w])(?!\.\d)")

_TIME = re.compile(r"\d{4}-\d\d-\d\dt\d\d:\d\d:\d\d\.\d{1,9}(?:z|[+-]\d\d:?\d\d)?")  # of a line of a log: no two are alike
_IN_TIME = re.compile(r"\d\d\.[\dz-]+")  # the only token in one


class Indicator(NamedTuple):
    """One thing that is known to be bad."""

    type: str
    value: str
    source: str  # the file or artifact that names it


class Asset(NamedTuple):
    """One machine, address, network or account of one's own."""

    name: str
    keys: Tuple[str, ...]
    criticality: str
    owner: str
    role: str


class Known:
    """Finds what is known in a line."""

    def __init__(self, indicators: List[Indicator], assets: List[Asset]) -> None:
        self.indicators, self.assets = indicators, assets
        self.unused = 0  # phrases beyond MOST_PHRASES
        self._exact: Dict[str, List[Any]] = {}
        self._networks: List[Tuple[Any, Any]] = []
        self._domains = False
        self._cache: Dict[str, Tuple[Any, ...]] = {}
        phrases: Dict[str, Indicator] = {}
        for one in indicators:
            value = one.value.lower()
            if one.type == "network":
                self._network(value, one)
            elif one.type in ("file_path", "registry_key", "phrase"):
                if len(phrases) < MOST_PHRASES:
                    phrases[value] = one
                else:
                    self.unused += 1
            elif one.type not in ("technique", "cve"):
                self._exact.setdefault(_plain(value), []).append(one)
                self._domains = self._domains or one.type == "domain"
        for asset in assets:
            for key in asset.keys:
                if "/" in key:
                    self._network(key, asset)
                else:
                    self._exact.setdefault(_plain(key), []).append(asset)
        phrases = {phrase: one for phrase, one in phrases.items() if "\n" not in phrase}  # which no line has
        self._phrases = phrases
        self._nothing: Set[str] = set()  # words that name nothing known
        self._something: Set[str] = set()  # words that do
        self._phrase = re.compile("|".join(re.escape(p) for p in sorted(phrases, key=len, reverse=True))) if phrases else None
        addresses_only = all(re.fullmatch(r"[\d.]+", key) for key in self._exact) and all(net.version == 4 for net, _ in self._networks)
        bare = any(re.fullmatch(r"[\w-]+", key) and not re.fullmatch(r"[0-9a-f]{32,128}", key) for key in self._exact)
        self._times = any(map(_IN_TIME.fullmatch, self._exact))  # whether something known looks like a part of a time
        self._name = "" if addresses_only else _WORD if bare else _DOTTED
        pattern = _chosen((True,) * len(_TOKENS), self._name) if self._name else _SIMPLE
        self._token = pattern if self._exact or self._networks else None

    def _network(self, text: str, what: Any) -> None:
        try:
            self._networks.append((ipaddress.ip_network(text, strict=False), what))
        except ValueError:
            return

    def candidates(self, lows: Sequence[str]) -> Set[int]:
        """Which of many lines in lower case may name something; all that found finds something in are among them.

        No token has white space in it, nor looks beyond it, so a line has the tokens of its
        words. Logs repeat most of their words: each is looked at once.
        """
        out: Set[int] = set()
        if self._token is not None:
            words = [line.split() for line in lows]
            fresh = set().union(*words) - self._nothing - self._something
            if len(self._nothing) + len(self._something) > _REMEMBERED:
                self._nothing, self._something = set(), self._something & set().union(*words)
            for word in fresh:
                hit = any(map(self._hits, self._tokens(word)))
                (self._something if hit else self._nothing).add(word)
            something = self._something
            if something:
                out.update(i for i, line in enumerate(words) if not something.isdisjoint(line))
        if self._phrase is not None:
            search = self._phrase.search
            out.update(i for i, line in enumerate(lows) if search(line))
        return out

    def _tokens(self, word: str) -> List[str]:
        """The tokens of a word, by the forms alone that it can have: most have neither a URL nor a mail address in them."""
        dotted = "." in word
        forms = ("http" in word, dotted, word.count(":") > 1, dotted and "@" in word, len(word) > 31)
        if not dotted and self._name != _WORD and not any(forms):
            return []
        if not self._name:
            return _SIMPLE.findall(word) if dotted else []
        if dotted and word[4:5] == "-" and not self._times and _TIME.fullmatch(word):
            return []
        return _chosen(forms, self._name if dotted or self._name == _WORD else "").findall(word)

    def _hits(self, token: str) -> Tuple[Any, ...]:
        cache = self._cache
        hits = cache.get(token)
        if hits is None:
            if len(cache) >= _REMEMBERED:
                cache.clear()
            hits = cache[token] = self._of(token)
        return hits

    def found(self, low: str) -> List[Any]:
        """The indicators and assets that a line in lower case names, each once."""
        out: List[Any] = []
        if self._token is not None:
            for token in self._token.findall(low):
                hits = self._hits(token)
                if hits:
                    out += [hit for hit in hits if hit not in out]
        if self._phrase is not None:
            for phrase in self._phrase.findall(low):
                if self._phrases[phrase] not in out:
                    out.append(self._phrases[phrase])
        return out

    def _of(self, token: str) -> Tuple[Any, ...]:
        plain = _plain(token)
        hits = list(self._exact.get(plain, ()))
        name = plain
        if plain.startswith("http"):
            name = re.sub(r"^https?://(?:[^/@]*@)?(\[[^\]]*\]|[^/:?#]*).*$", r"\1", plain, flags=re.S).strip("[]")
            hits += self._exact.get(name, ())
        elif "@" in plain:
            name = plain.rsplit("@", 1)[1]
            hits += self._exact.get(name, ())
        if self._domains and "." in name:
            labels = name.split(".")
            for i in range(1, len(labels) - 1):
                hits += [one for one in self._exact.get(".".join(labels[i:]), ()) if isinstance(one, Indicator) and one.type == "domain"]
        if self._networks and (name[:1].isdigit() or ":" in name):
            try:
                address = ipaddress.ip_address(name)
            except ValueError:
                return tuple(dict.fromkeys(hits))
            hits += [what for net, what in self._networks if net.version == address.version and address in net]
        return tuple(dict.fromkeys(hits))


@lru_cache(maxsize=128)
def _chosen(forms: Tuple[bool, ...], name: str) -> "re.Pattern[str]":
    """The pattern of those of _TOKENS that are wanted, and of names if there is one."""
    return re.compile("|".join([form for form, wanted in zip(_TOKENS, forms) if wanted] + ([name] if name else [])))


def _plain(token: str) -> str:
    """A token in the one form in which it is compared: IPv6 has many."""
    token = token.lower().rstrip(".")
    if token.count(":") >= 2 and not token.startswith("http"):
        try:
            return str(ipaddress.ip_address(token))
        except ValueError:
            return token
    return token.rstrip("/") if token.startswith("http") else token


def type_of(value: str) -> str:
    """What kind of indicator a value is."""
    text = value.strip().lower()
    try:
        return "network" if ipaddress.ip_network(text, strict=False).num_addresses > 1 else "ipv6" if ":" in text else "ipv4"
    except ValueError:
        pass
    if re.fullmatch(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128}", text):
        return {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}[len(text)]
    if text.startswith(("http://", "https://")):
        return "url"
    if re.fullmatch(r"[\w.+-]+@[\w.-]+", text):
        return "email"
    return "domain" if re.fullmatch(r"([a-z0-9_-]+\.)+[a-z][a-z0-9-]+", text) else "phrase"


def indicators_in(path: str, name: str) -> Iterator[Indicator]:
    """The indicators in a file: the lines or the result of threat_intel_ingester, or one value a line."""
    for entry in _entries(path, name):
        if isinstance(entry, str):
            yield Indicator(type_of(entry), entry, name)
        elif entry.get("kind", "indicator") == "indicator" and isinstance(entry.get("value"), str) and entry["value"].strip():
            yield Indicator(str(entry.get("type") or type_of(entry["value"])), entry["value"].strip(), name)


_KEYS = ("ip", "ip_address", "address", "host", "hostname", "fqdn", "name", "network", "cidr", "user", "username", "account")
_CRITICALITY = ("criticality", "importance", "priority", "tier")


def assets_in(path: str, name: str) -> Iterator[Asset]:
    """The assets in a file: CSV with a header, JSON lines, or a JSON array of objects."""
    for entry in _entries(path, name, table=True):
        if not isinstance(entry, dict):
            continue
        row = {str(key).strip().lower(): value for key, value in entry.items() if value not in (None, "")}
        keys = [part.strip().lower() for key in _KEYS if key in row for part in (row[key] if isinstance(row[key], list) else re.split(r"[;\s]+", str(row[key])))]
        keys = [key for key in dict.fromkeys(keys) if len(key) > 2]
        if not keys:
            continue
        level = next((str(row[key]).strip().lower() for key in _CRITICALITY if key in row), "medium")
        label = str(next((row[key] for key in ("name", "hostname", "host", "fqdn", "user", "username", "ip", "address") if key in row), keys[0]))
        yield Asset(label[:120], tuple(keys), level if level in LEVELS else "medium", str(row.get("owner", ""))[:120], str(row.get("role", row.get("description", "")))[:120])


def _entries(path: str, name: str, table: bool = False) -> Iterator[Any]:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_FILE + 1)
    except OSError as err:
        raise Refused("ARTIFACT_UNREADABLE", "%s cannot be read: %s" % (name, err.strerror or err), file_path=path) from None
    if len(data) > _MOST_FILE:
        raise Refused("ARTIFACT_UNREADABLE", "%s has more than %d bytes" % (name, _MOST_FILE), file_path=path)
    text = data.decode("utf-8-sig", "replace")
    whole = _json(text) if text.lstrip()[:1] in ("[", "{") else None
    if isinstance(whole, dict) and isinstance((whole.get("result") or whole).get("indicators"), list):
        whole = (whole.get("result") or whole)["indicators"]
    elif isinstance(whole, dict) and isinstance(whole.get("assets"), list):
        whole = whole["assets"]
    if isinstance(whole, list):
        yield from (entry for entry in whole if isinstance(entry, (dict, str)))
        return
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if table and lines and not lines[0].lstrip().startswith("{"):
        yield from csv.DictReader(lines)
        return
    for line in lines:
        entry: Optional[Any] = _json(line) if line.lstrip().startswith("{") else line.strip()
        if isinstance(entry, (dict, str)):
            yield entry


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
