"""What looks like an indicator and is none: private and reserved addresses, example
names, version numbers, names everybody uses. Each filter has a name to say why."""

from __future__ import annotations

import ipaddress
import os
from functools import lru_cache
from typing import FrozenSet, Iterable

_DOCUMENTATION = tuple(ipaddress.ip_network(n) for n in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"))
_EXAMPLE_NAMES = ("example.com", "example.org", "example.net", "example.edu")
_EXAMPLE_TLDS = ("example", "invalid", "localhost", "test", "local", "lan", "internal", "localdomain")


@lru_cache(maxsize=None)
def _words(name: str) -> FrozenSet[str]:
    """The words of a data file, one a line, # before a comment."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", name)
    with open(path, encoding="utf-8") as file:
        return frozenset(word for line in file for word in line.partition("#")[0].split())


def is_tld(label: str) -> bool:
    """Whether a label is a top-level domain worth looking for."""
    return label in _words("tlds.txt")


def is_file_ending(label: str) -> bool:
    """Whether a top-level domain is a common ending of file names too."""
    return label in _words("file_endings.txt")


@lru_cache(maxsize=8192)
def address(value: str) -> str:
    """Why an address (or network) is no indicator; empty if it may be one."""
    network = ipaddress.ip_network(value, strict=False)
    first = network.network_address
    if any(first in known for known in _DOCUMENTATION if known.version == first.version):
        return "documentation"
    if first.is_loopback or first.is_link_local or first.is_multicast or first.is_unspecified or first.is_reserved or first.is_private:
        return "private"
    if first.version == 4 and (first in ipaddress.ip_network("100.64.0.0/10") or int(first) >> 24 == 0):
        return "private"
    return ""


def domain(name: str) -> str:
    """Why a domain is no indicator; empty if it may be one."""
    labels = name.split(".")
    if labels[-1] in _EXAMPLE_TLDS or _is_under(name, _EXAMPLE_NAMES):
        return "documentation"
    if _is_under(name, _words("common_domains.txt")):
        return "common"
    return ""


def _is_under(name: str, parents: Iterable[str]) -> bool:
    labels = name.split(".")
    known = parents if isinstance(parents, frozenset) else frozenset(parents)
    return any(".".join(labels[i:]) in known for i in range(len(labels) - 1))
