"""What single lines of common logs show, each with the technique of ATT&CK that it is a sign of.

A rule is tried only on lines that have one of its words, so that most lines cost
no more than a few searches for short strings.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple


class Rule(NamedTuple):
    """One sign. source and user name groups of its pattern."""

    id: str
    title: str
    technique: str
    severity: str  # low, medium, high
    words: Tuple[str, ...]  # in lower case; one of them is in each line that fits
    pattern: "re.Pattern[str]"


def _rule(id: str, title: str, technique: str, severity: str, words: str, pattern: str) -> Rule:
    return Rule(id, title, technique, severity, tuple(words.split("|")), re.compile(pattern))


_IP = r"(?P<source>[0-9a-f.:]{3,45})"
_EVENT = r"(?:event(?:_?id|code)?\W{1,6}|<eventid[^>]{0,40}>)"

RULES: Tuple[Rule, ...] = (
    _rule("login_failed", "a login failed", "T1110", "low", "failed password|authentication failure|invalid user|failed publickey|logon failure",
          r"(?:failed (?:password|publickey|none) for (?:invalid user )?(?P<user>\S{1,64}) from " + _IP + r"|invalid user (?P<user2>\S{0,64}) from (?P<source2>[0-9a-f.:]{3,45})|authentication failure;.{0,200}?rhost=(?P<source3>[0-9a-f.:]{3,45}))"),
    _rule("login_failed", "a login failed", "T1110", "low", "4625", _EVENT + r"4625\b(?:.{0,2000}?(?:targetusername|account name)\W{1,12}(?P<user>[\w.$-]{1,64}))?(?:.{0,2000}?(?:ipaddress|source network address)\W{1,12}" + _IP + r")?"),
    _rule("login_failed", "a login failed", "T1110", "low", "consolelogin", r"consolelogin(?=.{0,4000}\"failure\")(?:.{0,4000}?sourceipaddress\W{1,6}" + _IP + r")?"),
    _rule("login_accepted", "a login was accepted", "T1078", "info", "accepted ", r"accepted (?:password|publickey|keyboard-interactive/pam) for (?P<user>\S{1,64}) from " + _IP),
    _rule("login_accepted", "a login was accepted", "T1078", "info", "4624", _EVENT + r"4624\b(?:.{0,2000}?(?:targetusername|account name)\W{1,12}(?P<user>[\w.$-]{1,64}))?(?:.{0,2000}?(?:ipaddress|source network address)\W{1,12}" + _IP + r")?"),
    _rule("account_created", "an account was created", "T1136", "medium", "useradd|new user|4720|createuser", r"(?:new user: name=(?P<user>[\w.-]{1,64})|useradd\b.{0,80}\bnew user|" + _EVENT + r"4720\b|\"eventname\":\s?\"createuser\")"),
    _rule("privileges_granted", "an account was given more rights", "T1098", "medium", "4732|4728|usermod|attachuserpolicy|createaccesskey",
          r"(?:" + _EVENT + r"47(?:32|28)\b|usermod\b.{0,120}(?:sudo|wheel|admin|root)|\"eventname\":\s?\"(?:attachuserpolicy|createaccesskey)\")"),
    _rule("sudo_refused", "sudo was refused", "T1548.003", "medium", "not in sudoers|incorrect password attempt", r"sudo\b.{0,40}?(?P<user>[\w.-]{1,64}) : .{0,40}(?:not in sudoers|incorrect password attempt)"),
    _rule("service_installed", "a service was installed", "T1543", "medium", "7045|4697", _EVENT + r"(?:7045|4697)\b"),
    _rule("task_scheduled", "a task was scheduled", "T1053", "medium", "4698|schtasks|crontab", r"(?:" + _EVENT + r"4698\b|schtasks(?:\.exe)?\W.{0,60}/create|crontab\[\d+\]: \(\S+\) (?:replace|begin edit))"),
    _rule("log_cleared", "a log was cleared or logging was stopped", "T1070", "high", "1102|/var/log|history -c|wevtutil|stoplogging|deletetrail|auditctl",
          r"(?:" + _EVENT + r"1102\b|rm\s.{0,60}/var/log|>\s?/var/log/\w|history -c\b|wevtutil(?:\.exe)?\W{1,3}cl\b|\"eventname\":\s?\"(?:stoplogging|deletetrail)\"|auditctl -[de]\s?0?)"),
    _rule("encoded_command", "an encoded command was run", "T1027", "high", "-enc|base64", r"(?:powershell(?:\.exe)?\W.{0,200}-e(?:nc|ncodedcommand)?\s+[a-z0-9+/=]{16,}|base64 (?:-d|--decode).{0,80}\|\s?(?:ba|z|da)?sh\b)"),
    _rule("download_run", "a program was fetched and run", "T1105", "high", "curl|wget|certutil|bitsadmin|downloadstring",
          r"(?:(?:curl|wget)\s[^|]{0,300}\|\s?(?:sudo )?(?:ba|z|da)?sh\b|certutil(?:\.exe)?\W.{0,60}-urlcache|bitsadmin\W.{0,40}/transfer|downloadstring\()"),
    _rule("reverse_shell", "a shell was opened to elsewhere", "T1059", "high", "/dev/tcp/|nc -e|ncat|mkfifo", r"(?:/dev/tcp/[\w.:-]{3,80}/\d{1,5}|\bn(?:c|cat) (?:-\w+ )*-e\s|mkfifo .{0,80}\bnc\b)"),
    _rule("credentials_read", "stored credentials were read", "T1003", "high", "mimikatz|lsass|sekurlsa|/etc/shadow|ntds.dit", r"(?:mimikatz|sekurlsa::|procdump.{0,60}lsass|lsass\.dmp|(?:cat|cp|less|head|tail|vi) .{0,40}/etc/shadow|ntds\.dit)"),
    _rule("web_exploit", "an exploit was tried on a web service", "T1190", "medium", "union|jndi:|../|..%2f|/etc/passwd|<?php|xp_cmdshell",
          r"(?:union(?:\s|\+|%20|/\*\*/){1,4}(?:all(?:\s|\+|%20)+)?select|\$\{jndi:|(?:get|post|put|head) [^ ]{0,500}(?:\.\./|\.\.%2f){2}|(?:get|post) [^ ]{0,500}/etc/passwd|xp_cmdshell|%3c\?php)"),
    _rule("remote_run", "a program was run on another machine", "T1021", "high", "psexec|psexesvc|wmic|winrs", r"(?:psexe(?:c|svc)|wmic(?:\.exe)?\W.{0,60}/node:|winrs(?:\.exe)?\W.{0,20}-r:)"),
    _rule("recovery_removed", "backups or shadow copies were removed", "T1490", "high", "vssadmin|shadowcopy|wbadmin|bcdedit", r"(?:vssadmin(?:\.exe)?\W.{0,20}delete shadows|shadowcopy.{0,20}delete|wbadmin(?:\.exe)?\W.{0,20}delete|bcdedit.{0,60}recoveryenabled\W{1,4}no)"),
    _rule("protection_stopped", "a protection was switched off", "T1562", "high", "setenforce|iptables -f|ufw disable|disablerealtimemonitoring|systemctl stop", r"(?:setenforce 0|iptables -f\b|ufw disable|disablerealtimemonitoring\W{1,4}(?:\$?true|1)|systemctl stop (?:auditd|rsyslog|falcon-sensor|firewalld|ufw))"),
)  # fmt: skip

SEVERITIES = {"info": 0, "low": 1, "medium": 2, "high": 3}


class Match(NamedTuple):
    """A rule that fits a line, with whom it names."""

    rule: Rule
    source: Optional[str]
    user: Optional[str]


class Rules:
    """Tries the rules on lines."""

    def __init__(self) -> None:
        words: Dict[str, List[Rule]] = {}
        for rule in RULES:
            for word in rule.words:
                words.setdefault(word, []).append(rule)
        self._words = list(words.items())

    def candidates(self, lows: Sequence[str]) -> Set[int]:
        """Which of many lines in lower case have a word of a rule: one search through all of them for each word."""
        text = "\n".join(lows)
        ends = list(itertools.accumulate(len(line) + 1 for line in lows))  # where the next line begins
        out: Set[int] = set()
        for word, _ in self._words:
            at = text.find(word)
            while at >= 0:
                i = bisect_right(ends, at)
                out.add(i)
                at = text.find(word, ends[i])
        return out

    def found(self, low: str) -> List[Match]:
        """The rules that fit a line in lower case."""
        out: List[Match] = []
        for word, rules in self._words:
            if word in low:
                for rule in rules:
                    if any(match.rule is rule for match in out):
                        continue
                    hit = rule.pattern.search(low)
                    if hit is not None:
                        groups: Dict[str, Any] = hit.groupdict()
                        source = groups.get("source") or groups.get("source2") or groups.get("source3")
                        out.append(Match(rule, source, groups.get("user") or groups.get("user2")))
        return out
