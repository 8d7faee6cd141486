"""The stand-in host, the public names and the lists that must agree."""

from __future__ import annotations

import json
import os
import re
import sys
import unittest
from unittest import mock

from peer import SDK

import mortise
from mortise import Cancelled, Context, Plugin, PluginError, Result, ServiceError
from mortise.testing import call

plugin = Plugin("a.b", version="1")


@plugin.tool
def greet(name: str, ctx: Context) -> object:
    ctx.log.info("greeting", name=name)
    ctx.progress("greeting", done=1, total=1)
    ctx.cache.set("last", name)
    word = ctx.service("secrets.get", {"key": "word"})["value"]
    ctx.emit({"name": ctx.cache.get("last")})
    ctx.cache.delete("last")
    return Result(f"{word} {name}", summary=ctx.cache.get("last", "gone"))


@plugin.tool
async def slow(ctx: Context) -> float:
    ctx.check()
    return float("nan")


class StandIn(unittest.TestCase):
    def test_records_what_the_call_did(self) -> None:
        outcome = call(plugin, "greet", {"name": "Ada"}, services={"secrets.get": lambda args: {"value": args["key"]}})
        self.assertEqual(outcome.data, "word Ada")
        self.assertEqual(outcome.result["summary"], "gone")
        self.assertEqual(outcome.logs, [{"level": "info", "message": "greeting", "fields": {"name": "Ada"}}])
        self.assertEqual(outcome.progress, [{"message": "greeting", "done": 1, "total": 1}])
        self.assertEqual(outcome.content, [{"name": "Ada"}])
        self.assertEqual([method for method, _ in outcome.requests][:2], ["cache.set", "secrets.get"])

    def test_raises_what_the_call_raised(self) -> None:
        with self.assertRaises(ServiceError) as refused:
            call(plugin, "greet", {"name": "Ada"})
        self.assertEqual(refused.exception.code, "service_denied")
        with self.assertRaises(OSError):
            call(plugin, "greet", {"name": "Ada"}, services={"secrets.get": OSError("gone")})
        with self.assertRaises(Cancelled):
            call(plugin, "slow", cancelled=True)
        with self.assertRaises(PluginError) as invalid:
            call(plugin, "slow")
        self.assertEqual(invalid.exception.code, "INVALID_RESULT")
        with self.assertRaises(mortise.MortiseError):
            call(plugin, "nothing")


class Readme(unittest.TestCase):
    def test_its_examples_run_and_describe_themselves(self) -> None:
        with open(os.path.join(SDK, "README.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        scope: dict[str, object] = {"__name__": __name__}
        with mock.patch.object(Plugin, "run"), mock.patch.object(sys, "path", [*sys.path, os.path.join(SDK, "shu")]):
            for block in blocks:
                exec(block, scope)
        self.assertEqual(len(blocks), 8)
        about = scope["plugin"].describe()
        self.assertEqual([hook["event"] for hook in about["hooks"]], ["tool.before@v1", "channel.message.in@v1", "session.opened@v1"])
        self.assertEqual(list(about["operations"]), ["word_count", "move", "read", "total", "send", "decide", "inbound"])


class Lists(unittest.TestCase):
    def test_codes_are_those_of_the_protocol(self) -> None:
        path = os.path.join(SDK, "..", "..", "protocol", "codes.json")
        with open(path, encoding="utf-8") as file:
            want = {code["code"]: code["meaning"] for code in json.load(file)}
        self.assertEqual(mortise.CODES, want)
        self.assertLessEqual(mortise._errors.SPOKEN, set(want))

    def test_public_names_exist(self) -> None:
        for name in mortise.__all__:
            self.assertIsNotNone(getattr(mortise, name))
        with self.assertRaises(AttributeError):
            mortise.nothing
