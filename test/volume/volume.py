"""Runs each tool of investigations over large inputs, in its cage with 256 MiB of memory, and prints a table.

python3 volume.py MORTISE [MEGABYTES] [TOOL...] makes the inputs, runs each tool with `mortise run`
on a terminal of its own, counts how often its progress is told there, reads the most memory that one
of its processes had, and holds the result against a second implementation (second.py). It ends with
status 1 where one differs, fails, takes more memory or tells no progress.

VOLUME_DIR is where it works: three times the size of the inputs have to fit.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, NamedTuple, Tuple

import inputs
import second

MEMORY = 256  # MiB
CONFIG = "plugins:\n  memory: %dMiB\n" % MEMORY


class Case(NamedTuple):
    """One tool on one kind of input."""

    tool: str
    kind: str
    args: Tuple[str, ...]
    check: second.Check
    note: str = ""  # why its input has no gigabyte


ALL_TEMPLATES = ("--limit", "500")
CASES = (
    Case("event_source_profiler", "log", (), second.profile),
    Case("pattern_extractor", "log", ALL_TEMPLATES, second.patterns),
    Case("context_enriched_analyzer", "log", ("--iocs", ",".join(inputs.IOCS), "--limit", "200"), second.enriched),
    Case("firewall_log_aggregator", "firewall", (), second.rows),
    Case("threat_intel_ingester", "report", (), second.intel),
    Case("pcap_metadata_summary", "pcap", (), second.summary),
    Case("pcap_flow_analyzer", "pcap", (), second.flows),
    Case("pcap_ip_search", "pcap", ("--addresses", inputs.TARGET), second.search),
    Case("image_analyzer", "image", (), second.picture),
    Case("attack_path_generator", "graph", (), second.paths, "5,000 nodes and 50,000 edges, the most it takes"),
    Case("attack_path_renderer", "paths", (), second.drawn, "the paths of that graph"),
    Case("threat_model_builder", "system", (), second.model, "500 components and 2,000 flows, the most it takes"),
)


class Run(NamedTuple):
    """How a run went."""

    status: int
    seconds: float
    peak: int  # KiB, of one process of the tool
    progress: int
    answer: Dict[str, Any]
    said: str


def descendants(pid: int) -> List[int]:
    """The processes that a process has started, and those that they have."""
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/children" % (pid, task)) as file:
                for child in map(int, file.read().split()):
                    found += [child, *descendants(child)]
        except OSError:
            continue
    return found


def peak_of(pid: int) -> int:
    """The most memory that a process ever had, in KiB."""
    try:
        with open("/proc/%d/status" % pid) as file:
            found = re.search(r"VmHWM:\s+(\d+)", file.read())
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


def measured(command: List[str], env: Dict[str, str]) -> Run:
    """Run a command with standard error on a terminal; what it printed has to be JSON."""
    master, slave = pty.openpty()
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=slave, stdin=slave, env=env)
        os.close(slave)
        peak, said, looked = 0, b"", 0.0
        while True:
            ready, _, _ = select.select([master], [], [], 0.05)
            if ready:
                try:
                    part = os.read(master, 65536)
                except OSError:
                    break
                if not part:
                    break
                said += part
            elif process.poll() is not None:
                break
            if time.monotonic() - looked > 0.05:
                looked = time.monotonic()
                try:
                    peak = max([peak, *map(peak_of, descendants(process.pid))])
                except OSError:
                    pass
        status = process.wait()
        os.close(master)
        out.seek(0)
        text = out.read()
    told = len(set(re.findall(rb"\r([^\r]*\d+(?:\.\d+)?%? of [^\r,]*)", said)) - {b""})
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {"error": text[-500:].decode("utf-8", "replace")}
    return Run(status, time.monotonic() - begin, peak, told, answer, said.decode("utf-8", "replace"))


def tried(mortise: str, case: Case, path: str, work: str) -> Tuple[Run, Dict[str, Any]]:
    """Run a case in a data directory of its own, which is gone after it."""
    home = os.path.join(work, "home")
    os.makedirs(home)
    with open(os.path.join(home, "mortise.yaml"), "w") as file:
        file.write(CONFIG)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MORTISE_")}
    env.update(MORTISE_HOME=home, MORTISE_SERVER="embedded", COLUMNS="200", TERM="xterm")
    try:
        session = subprocess.run([mortise, "sessions", "create"], env=env, check=True, capture_output=True, text=True).stdout.strip()
        run = measured([mortise, "run", case.tool, "--session", session, "--artifact", path, "--json", "--", *case.args], env)
        data = run.answer.get("data") or {}
        return run, data.get("result", data) if isinstance(data, dict) else {}
    finally:
        shutil.rmtree(home)


def main() -> int:
    mortise = os.path.abspath(sys.argv[1])
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    wanted = sys.argv[3:] or [case.tool for case in CASES]
    bad = 0
    print("| tool | input | bytes | seconds | peak memory | progress | agrees with |\n|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="volume-", dir=os.environ.get("VOLUME_DIR")) as work:
        made, last = "", {}  # type: str, Dict[str, Any]
        for case in CASES:
            if case.tool not in wanted and not (case.tool == "attack_path_generator" and "attack_path_renderer" in wanted):
                continue
            path = os.path.join(work, "input-%s.%s" % (case.kind, inputs.ENDINGS.get(case.kind, "json")))
            if path != made:
                if made:
                    os.unlink(made)
                made = path
                if case.kind == "paths":
                    with open(path, "w") as file:
                        json.dump(last, file)
                else:
                    inputs.make(case.kind, path, megabytes)
            run, last = tried(mortise, case, path, work)
            try:
                assert run.status == 0 and last, "it ended with %d: %s %s" % (run.status, json.dumps(run.answer)[:600], run.said[-600:])
                agreed = case.check(last, path)
                assert run.peak <= MEMORY << 10, "%d KiB of memory" % run.peak
                assert run.peak > 0, "no process of it was seen"
                assert case.note or run.progress > 0 or run.seconds < 6, "no progress was told"
            except second.Missing as err:
                agreed = "nothing: %s is not installed" % err
            except (AssertionError, KeyError, IndexError) as err:
                agreed = "FAILED: %s %s" % (type(err).__name__, err)
                bad += 1
            print("| %s | %s | %d | %.1f | %d MiB | %d | %s |" % (
                case.tool, case.note or case.kind, os.path.getsize(path), run.seconds, run.peak >> 10, run.progress, agreed), flush=True)  # fmt: skip
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
