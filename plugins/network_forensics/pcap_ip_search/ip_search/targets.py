"""What is searched for: addresses and networks, found by a packet's own bytes."""

from __future__ import annotations

import ipaddress
import json
from typing import Any, Dict, Iterable, List, Tuple, Union

from .tooling import Refused

MOST = 10_000
_REMEMBERED = 200_000  # addresses whose answer is kept

Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


class Targets:
    """The addresses and networks of one search."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.names: List[str] = []
        self._exact: Dict[bytes, List[int]] = {}
        self._wide: List[Tuple[int, int, int, int]] = []  # version, mask, network, index
        self._known: Dict[bytes, Tuple[int, ...]] = {}
        seen = set()
        for text in texts:
            network = _network(text)
            name = str(network.network_address) if network.num_addresses == 1 else str(network)
            if name in seen:
                continue
            seen.add(name)
            if len(self.names) == MOST:
                raise Refused("INPUT_VALIDATION_FAILED", "more than %d addresses are searched for" % MOST)
            index = len(self.names)
            self.names.append(name)
            if network.num_addresses == 1:
                self._exact.setdefault(network.network_address.packed, []).append(index)
            else:
                self._wide.append((network.max_prefixlen // 8, int(network.netmask), int(network.network_address), index))

    def of(self, address: bytes) -> Tuple[int, ...]:
        """Which of them an address in its packed form is of."""
        found = self._known.get(address)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            number = int.from_bytes(address, "big")
            wide = [index for size, mask, network, index in self._wide if size == len(address) and number & mask == network]
            found = self._known[address] = tuple(self._exact.get(address, []) + wide)
        return found


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip().strip("[]"), strict=False)
    except ValueError:
        raise Refused("INPUT_VALIDATION_FAILED", "%r is no address and no network" % text[:60], errors=["addresses: %r is no address and no network" % text[:60]]) from None


def named_in(path: str) -> List[str]:
    """The addresses in a file: one a line, or the lines of threat_intel_ingester's artifact."""
    found: List[str] = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            line = line.strip()
            if line.startswith("{"):
                line = _indicator(line)
            if not line or line.startswith("#"):
                continue
            try:
                ipaddress.ip_network(line, strict=False)
            except ValueError:
                continue
            found.append(line)
            if len(found) > MOST:
                raise Refused("INPUT_VALIDATION_FAILED", "the file of indicators has more than %d addresses" % MOST)
    return found


def _indicator(line: str) -> str:
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(entry, dict) or entry.get("kind", "indicator") != "indicator" or entry.get("type") not in ("ipv4", "ipv6", "network"):
        return ""
    return str(entry.get("value", ""))
