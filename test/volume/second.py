"""The same figures by other means: grep, awk, sha256sum and tshark, or plain Python where none of them fits.

A check gets the tool's result and the path of its input, returns what it used, and raises AssertionError where they differ.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import subprocess
from typing import Any, Callable, Dict, List, Set, Tuple

import inputs


class Missing(Exception):
    """A program that the comparison needs is not installed."""


def ask(*command: str) -> str:
    """What a program prints; one that finds nothing ends with 1."""
    if shutil.which(command[0]) is None:
        raise Missing(command[0])
    run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    if run.returncode > 1:
        raise RuntimeError("%s: %s" % (command[0], run.stderr[-500:]))
    return run.stdout


def grep(pattern: str, path: str) -> int:
    """How many lines fit."""
    return int(ask("grep", "-cE", pattern, path))


def same(what: str, got: Any, want: Any) -> None:
    """Two figures are one."""
    assert got == want, "%s: the tool says %r, the second implementation %r" % (what, got, want)


def patterns(result: Dict[str, Any], path: str) -> str:
    """Lines are counted as wc does, and each message as grep does."""
    same("lines", result["totals"]["lines"], int(ask("wc", "-l", path).split()[0]))
    for text in ("Failed password", "Accepted publickey", " in module ", "\"GET "):
        same(text, sum(one["count"] for one in result["templates"] if text in one["template"]), grep(text, path))
    same("sum", sum(one["count"] for one in result["templates"]) + result["other"]["lines"], result["totals"]["lines"])
    return "wc, grep"


def profile(result: Dict[str, Any], path: str) -> str:
    """Records, the first and last time, and how many records each program has."""
    same("records", result["totals"]["records"], int(ask("wc", "-l", path).split()[0]))
    same("first", result["time"]["first"][:19], ask("head", "-n", "1", path)[:19])
    same("last", result["time"]["last"][:19], ask("tail", "-n", "1", path)[:19])
    counts = dict(line.split() for line in ask("awk", '{sub(/[^a-z].*/, "", $3); n[$3]++} END {for (k in n) print k, n[k]}', path).splitlines())
    same("sources", {one["name"]: one["records"] for one in result["sources"]}, {name: int(n) for name, n in counts.items()})
    return "wc, awk"


def enriched(result: Dict[str, Any], path: str) -> str:
    """Logins that failed, and the lines of each indicator."""
    same("failed logins", result["counts"]["failed_logins"], grep("Failed password", path))
    found = {one["subject"]: one["count"] for one in result["findings"] if one["kind"] == "indicator"}
    for ioc, pattern in zip(inputs.IOCS, (r"[= ]198\.51\.100\.77$", r"[ .]evil\.example ", "md5=%s " % inputs.IOCS[2], "=/tmp/.hidden/run ")):
        same(ioc, found.get(ioc, 0), grep(pattern, path))
    return "grep"


def intel(result: Dict[str, Any], path: str) -> str:
    """The different values of each type, and how often each listed one is there."""
    forms = {"ipv4": r"45(\.|\[\.\])[0-9]+(\.|\[\.\])[0-9]+(\.|\[\.\])[0-9]+", "cve": "CVE-2024-[0-9]+", "sha256": "[0-9a-f]{64}"}
    counts: Dict[Tuple[str, str], int] = collections.Counter()
    for kind, form in forms.items():
        for value in ask("grep", "-oE", form, path).split():
            counts[kind, value.replace("[.]", ".")] += 1
    for kind in forms:
        left_out = sum(1 for one in result["filtered"] if one["type"] == kind)  # what looks like a version, say
        same(kind, result["counts"].get(kind, 0) + left_out, sum(1 for k, _ in counts if k == kind))
    same("left out", len(result["filtered"]), result["filtered_total"])
    for one in result["indicators"]:
        same(one["value"], one["count"], counts[one["type"], one["value"]])
    return "grep"


def rows(result: Dict[str, Any], path: str) -> str:
    """Rows and bytes by action, port and destination."""
    program = (
        '{a = ($4 == "[UFW" && $5 == "BLOCK]") ? "deny" : "allow"; for (i = 6; i <= NF; i++) {split($i, kv, "="); f[kv[1]] = kv[2]}'
        ' n["action " a]++; n["port " tolower(f["PROTO"]) "/" f["DPT"]]++; n["to " f["DST"]]++; b["to " f["DST"]] += f["LEN"]}'
        ' END {for (k in n) printf "%s %d %d\\n", k, n[k], b[k]}'
    )
    want: Dict[str, Tuple[int, int]] = {}
    for line in ask("awk", program, path).splitlines():
        key, n, size = line.rsplit(" ", 2)
        want[key] = int(n), int(size)
    for one in result["by_action"]:
        same(one["action"], one["rows"], want.get("action " + one["action"], (0, 0))[0])
    for one in result["by_port"]:
        same("port", one["rows"], want["port %s/%d" % (one["protocol"], one["port"])][0])
    for one in result["by_destination"]:
        same(one["address"], (one["rows"], one["bytes"]), want["to " + one["address"]])
    assert result["by_action"] and result["by_port"] and result["by_destination"]
    return "awk"


def _frames(path: str) -> List[List[str]]:
    """A frame each: length, addresses, protocol, ports; what is above TCP and UDP is not looked into."""
    fields = [part for name in ("frame.len", "ip.src", "ip.dst", "ip.proto", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport") for part in ("-e", name)]
    off = [part for name in ("http", "tls", "h225", "socks", "vicp", "c1222", "cnip", "ltp", "pktc") for part in ("--disable-protocol", name)]
    text = ask("tshark", "-n", *off, "-o", "tcp.desegment_tcp_streams:FALSE", "-o", "tcp.analyze_sequence_numbers:FALSE", "-T", "fields", *fields, "-r", path)
    return [line.split("\t") for line in text.splitlines()]


def _conversations(path: str) -> Dict[Tuple[str, ...], Tuple[int, int]]:
    """Packets and bytes of each conversation, whichever way they went."""
    found: Dict[Tuple[str, ...], Tuple[int, int]] = {}
    for length, a, b, protocol, *ports in _counted(path):
        left, right = sorted(((a, ports[0] or ports[2]), (b, ports[1] or ports[3])))
        n, size = found.get((protocol, *left, *right), (0, 0))
        found[(protocol, *left, *right)] = n + 1, size + int(length)
    return found


_cache: Dict[str, List[List[str]]] = {}


def _counted(path: str) -> List[List[str]]:
    if path not in _cache:
        _cache.clear()
        _cache[path] = _frames(path)
    return _cache[path]


def _key(one: Dict[str, Any]) -> Tuple[str, ...]:
    left, right = sorted(((one["source"], str(one["source_port"])), (one["destination"], str(one["destination_port"]))))
    return ({"tcp": "6", "udp": "17"}[one["protocol"]], *left, *right)


def summary(result: Dict[str, Any], path: str) -> str:
    """Packets, bytes and the largest conversations."""
    seen = _counted(path)
    same("packets", result["packets"], len(seen))
    same("bytes", result["bytes"], sum(int(one[0]) for one in seen))
    talks = _conversations(path)
    same("conversations", result["counts"]["conversations"], len(talks))
    for one in result["conversations"]:
        same(str(_key(one)), (one["packets"], one["bytes"]), talks[_key(one)])
    return "tshark"


def flows(result: Dict[str, Any], path: str) -> str:
    """Packets, bytes, and the bytes of the largest flows."""
    seen = _counted(path)
    same("packets", result["counts"]["packets"], len(seen))
    same("bytes", result["counts"]["bytes"], sum(int(one[0]) for one in seen))
    talks = _conversations(path)
    same("lost or repeated", (result["counts"]["retransmitted"], result["counts"]["missing_bytes"], result["counts"]["malformed"]), (0, 0, 0))
    assert result["counts"]["flows"] >= len(talks), "fewer flows than conversations"
    for one in result["flows"]:
        assert one["bytes"] <= talks[_key(one)][1], "a flow has more bytes than its conversation: %r" % one
    if result["counts"]["flows"] == len(talks):
        same("largest", max(one["bytes"] for one in result["flows"]), max(size for _, size in talks.values()))
    return "tshark"


def search(result: Dict[str, Any], path: str) -> str:
    """The frames of an address, and the first and last of them."""
    hits = [(number, int(one[0])) for number, one in enumerate(_counted(path), 1) if inputs.TARGET in one[1:3]]
    target = result["targets"][0]
    same("frames", (target["frames"], target["bytes"]), (len(hits), sum(size for _, size in hits)))
    same("places", (target["first"]["frame"], target["last"]["frame"]), (hits[0][0], hits[-1][0]))
    return "tshark"


def picture(result: Dict[str, Any], path: str) -> str:
    """The hashes, and how much is behind the end."""
    for kind in ("sha256", "sha1", "md5"):
        same(kind, result["file"][kind], ask(kind + "sum", path).split()[0])
    same("behind the end", result["behind_the_end"]["size"], os.path.getsize(path) - _end(path))
    return "sha256sum"


def _end(path: str) -> int:
    with open(path, "rb") as file:
        return file.read(4096).index(b"IEND") + 8


def paths(result: Dict[str, Any], path: str) -> str:
    """What can be reached, and the probability of the likeliest path, by a plain search of everything."""
    with open(path, encoding="utf-8") as file:
        described = json.load(file)
    best = {node["id"]: 1.0 for node in described["nodes"] if node["entry"]}
    ways: Dict[str, List[Tuple[str, float]]] = collections.defaultdict(list)
    for edge in described["edges"]:
        ways[edge["from"]].append((edge["to"], edge["probability"]))
    changed: Set[str] = set(best)
    while changed:
        again: Set[str] = set()
        for one in changed:
            for to, p in ways[one]:
                if best[one] * p > best.get(to, 0.0):
                    best[to] = best[one] * p
                    again.add(to)
        changed = again
    same("reached", result["counts"]["reached"], len(best))
    likeliest = max(best.get(node["id"], 0.0) for node in described["nodes"] if node["target"])
    assert abs(result["paths"][0]["probability"] - likeliest) < 1e-3, (result["paths"][0]["probability"], likeliest)
    return "plain Python"


def drawn(result: Dict[str, Any], path: str) -> str:
    """Every node and step of the paths is in the drawing."""
    with open(path, encoding="utf-8") as file:
        described = json.load(file)
    described = described.get("result", described)
    names = {step[end] for one in described["paths"][:200] for step in one["steps"] for end in ("from", "to")}
    steps = {(step["from"], step["to"]) for one in described["paths"][:200] for step in one["steps"]}
    same("nodes and steps", (result["nodes"], result["steps"]), (len(names), len(steps)))
    return "plain Python"


def model(result: Dict[str, Any], path: str) -> str:
    """What is counted, with flows between zones that trust differently."""
    with open(path, encoding="utf-8") as file:
        described = json.load(file)
    zone = {part["id"]: part["zone"] for part in described["components"]}
    same("counts", [result["counts"][name] for name in ("components", "flows", "zones")], [len(described[name]) for name in ("components", "flows", "zones")])
    same("crossing", result["counts"]["crossing"], sum(zone[flow["from"]] != zone[flow["to"]] for flow in described["flows"]))
    same("levels", sum(result["counts"]["levels"].values()), result["counts"]["threats"])
    return "plain Python"


Check = Callable[[Dict[str, Any], str], str]
