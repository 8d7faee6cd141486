"""The host of the tests: policy asks a person about mail/send, refuses mail/secret and lets mail/upper run."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SDK = os.path.dirname(HERE)
BINARY = os.environ.get("MORTISE_TEST_BINARY") or os.path.join(os.path.dirname(os.path.dirname(SDK)), "bin", "mortise")

sys.path[:0] = [SDK, os.path.join(HERE, "frameworks")]
sys.dont_write_bytecode = True

from mortise_client import Client, MortiseError, Pending  # noqa: E402

PLUGIN = '''import uuid
from mortise import Plugin

plugin = Plugin("mail", version="1.0.0")

@plugin.operator(effects=["mail_send"])
def send(to: str, text: str = "") -> dict:
    """Send a mail."""
    return {"to": to, "receipt": uuid.uuid4().hex}

@plugin.operator(effects=["mail_send"])
def secret() -> str:
    """Not for agents."""
    return "sent"

@plugin.operator(effects=["mail_send"])
def ping(text: str = "") -> str:
    """Send a mail that says nothing much."""
    return "pinged" + text

@plugin.tool
def upper(text: str, config: str = "") -> str:
    """Make a text upper case."""
    return text.upper() + config

plugin.run()
'''

POLICY = """@id("mail_waits") @approval("it leaves the house")
permit (principal == User::"bot", action in [Action::"execute", Action::"list"], resource == Operation::"mail/send");
@id("tools")
permit (principal == User::"bot", action in [Action::"execute", Action::"list"], resource) when { ["mail/upper", "mail/ping"].contains(resource.name) };
@id("seen")
permit (principal == User::"bot", action == Action::"list", resource == Operation::"mail/secret");
@id("approve")
permit (principal == User::"ann", action == Action::"approve", resource);
"""


class Host:
    """A host that serves on a loopback address, with the tokens of a program and of a person."""

    def __init__(self) -> None:
        self.home = tempfile.mkdtemp(prefix="mortise-client-")
        source = os.path.join(self.home, "source")
        os.mkdir(source)
        for name, text in (
            ("mortise.yaml", "sandbox: best-effort\npolicy: {default: none, files: [mail.cedar], groups: {people: [ann, bot]}}\n"),
            ("mail.cedar", POLICY),
            ("source/plugin.py", PLUGIN),
            ("source/manifest.yaml", "name: mail\nversion: 1.0.0\ndescription: Mail.\nrunner: {kind: process, entry: plugin.py}\n"),
        ):
            with open(os.path.join(self.home, name), "w", encoding="utf-8") as file:
                file.write(text)
        self._env = {**{name: value for name, value in os.environ.items() if not name.startswith("MORTISE_")}, "HOME": self.home}
        self._mortise("plugins", "register", source)
        self.token = self._mortise("tokens", "create", "bot", "--for", "bot", "--scope", "run", "--scope", "read")
        self._person = self._mortise("tokens", "create", "ann", "--for", "ann", "--scope", "read", "--scope", "approve")
        command = [BINARY, "--home", self.home, "serve", "--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(command, env=self._env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        atexit.register(self.stop)
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if "listening on " in line:
                self.url = line.split("listening on ")[1].strip()
                break
        else:
            raise RuntimeError("the host ended before it listened: " + "".join(said))
        threading.Thread(target=self._process.stderr.read, daemon=True).start()
        self.client = Client(self.url, self.token)

    def _mortise(self, *arguments: str) -> str:
        command = [BINARY, "--home", self.home, *arguments]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"mortise {' '.join(arguments)}: {done.stderr}")
        return done.stdout.strip()

    def _ask(self, method: str, route: str, token: str) -> Any:
        request = urllib.request.Request(f"{self.url}/api/v1/{route}", method=method, data=b"{}" if method == "POST" else None)
        request.add_header("Authorization", "Bearer " + token)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def approve(self, pending: Pending) -> None:
        self._ask("POST", f"approvals/{pending.approval_id}:approve", self._person)

    def deny(self, pending: Pending) -> None:
        self._ask("POST", f"approvals/{pending.approval_id}:deny", self._person)

    def calls(self, operation: str) -> int:
        """How many calls of an operation the host has on record."""
        return len(self._ask("GET", "calls?page_size=200&operation=" + urllib.parse.quote(operation, safe=""), self.token)["calls"])

    def stop(self) -> None:
        atexit.unregister(self.stop)
        self._process.terminate()
        self._process.wait(30)
        if self._process.stderr is not None:
            self._process.stderr.close()
        shutil.rmtree(self.home, ignore_errors=True)


_shared: Host | None = None


def the_host() -> Host:
    """The host that all tests have in common. It ends with the process."""
    global _shared
    if _shared is None:
        _shared = Host()
    return _shared


def code_of(error: BaseException) -> str:
    return error.code if isinstance(error, MortiseError) else ""
