"""Hooks: what may be declared, what may be answered, and real processes that hear of events."""

from __future__ import annotations

import unittest
from typing import Any

from peer import Peer, write_plugin

from mortise import Context, Plugin, PluginError
from mortise.testing import hook

USE = {"agentId": "support", "sessionId": "s", "at": "2026-03-02T09:00:06Z", "toolName": "shell", "toolCallId": "c", "args": {}}


class Declarations(unittest.TestCase):
    def test_what_cannot_be_right_is_refused_at_start(self) -> None:
        def fine(payload: dict) -> None: ...

        def none() -> None: ...

        def two(payload: dict, more: dict) -> None: ...

        def any_of(*payload: dict) -> None: ...

        def generator(payload: dict) -> Any:
            yield

        cases: list[tuple[str, dict[str, Any], Any, str]] = [
            ("tool.before", {}, fine, "say tool.before@v1"),
            ("tool.befor@v1", {}, fine, "there are agent.started@v1"),
            ("tool.after@v1", {"priority": "high"}, fine, "finite number"),
            ("tool.after@v1", {"priority": True}, fine, "finite number"),
            ("tool.after@v1", {"failure_mode": "ignore"}, fine, "skip or fail"),
            ("tool.after@v1", {"deadline_ms": 0}, fine, "1 to 600000"),
            ("tool.after@v1", {"deadline_ms": 1.5}, fine, "1 to 600000"),
            ("tool.after@v1", {"before": "other"}, fine, "a list"),
            ("tool.after@v1", {"after": ["p"] * 33}, fine, "at most 32"),
            ("tool.after@v1", {}, none, "takes the payload"),
            ("tool.after@v1", {}, two, "takes the payload"),
            ("tool.after@v1", {}, any_of, "takes the payload"),
            ("tool.after@v1", {}, generator, "takes the payload"),
            ("tool.after@v1", {}, len, "not a function"),
        ]
        for event, options, func, message in cases:
            plugin = Plugin("test.plugin", version="1.0.0")
            with self.assertRaisesRegex((TypeError, ValueError), message):
                plugin.hook(event, **options)(func)
            self.assertEqual(plugin.hooks, {})
        plugin = Plugin("test.plugin", version="1.0.0")
        plugin.hook("tool.after@v1")(fine)
        with self.assertRaisesRegex(ValueError, "two hooks"):
            plugin.hook("tool.after@v1")(fine)

    def test_describe_has_what_was_said_and_no_more(self) -> None:
        plugin = Plugin("test.plugin", version="1.0.0")
        self.assertNotIn("hooks", plugin.describe())
        plugin.hook("tool.after@v1")(lambda payload: None)
        plugin.hook("tool.before@v1", priority=0, failure_mode="skip", deadline_ms=5, before=("a",))(lambda p: None)
        want = [
            {"event": "tool.after@v1"},
            {"event": "tool.before@v1", "priority": 0, "failure_mode": "skip", "deadline_ms": 5, "before": ["a"]},
        ]
        self.assertEqual(plugin.describe()["hooks"], want)

    def test_a_wrong_event_ends_the_process_with_a_message(self) -> None:
        with Peer(write_plugin("""
            from mortise import Plugin
            plugin = Plugin("test.plugin", version="1.0.0")
            @plugin.hook("tool.before")
            def guard(payload): ...
            plugin.run()
        """)) as plugin:
            status, stderr = plugin.wait()
            self.assertEqual(status, 1)
            self.assertIn("there is no event 'tool.before': say tool.before@v1", stderr)


class Answers(unittest.TestCase):
    def ask(self, event: str, said: Any, payload: Any = USE) -> Any:
        plugin = Plugin("test.plugin", version="1.0.0")
        plugin.hook(event)(lambda payload: said)
        return hook(plugin, event, payload)

    def test_what_each_shape_may_answer(self) -> None:
        self.assertEqual(self.ask("session.opened@v1", None), {})
        self.assertEqual(self.ask("channel.message.in@v1", None), {})
        self.assertEqual(self.ask("channel.message.in@v1", {"text": "a"}), {"payload": {"text": "a"}})
        self.assertEqual(self.ask("tool.before@v1", {"allow": True}), {"allow": True})
        refusal = {"allow": False, "reason": "no"}
        self.assertEqual(self.ask("tool.before@v1", refusal), refusal)
        changed = {"allow": True, "payload": {"args": {}}}
        self.assertEqual(self.ask("tool.before@v1", changed), changed)
        self.assertEqual(self.ask("tool.before@v1", {"allow": True, "reason": None, "payload": None}), {"allow": True})

    def test_what_is_no_answer_is_a_failure(self) -> None:
        for event, answers in {
            "session.opened@v1": [1, {}, {"allow": False}, {"payload": {}}, "", False],
            "channel.message.in@v1": [1, "text", [], True],
            "tool.before@v1": [None, True, {}, {"allow": 1}, {"allow": True, "payload": 1}, {"allowed": True}, {"allow": True, "why": ""}],
        }.items():
            for said in answers:
                with self.assertRaises(PluginError) as caught:
                    self.ask(event, said)
                self.assertEqual(caught.exception.code, "INVALID_RESULT", said)

    def test_the_context_is_handed_in_and_coroutines_run(self) -> None:
        plugin = Plugin("test.plugin", version="1.0.0")

        @plugin.hook("tool.before@v1")
        async def guard(payload: dict, about: Context) -> dict:
            return {"allow": False, "reason": f"{about.agent} {about.session} {about.deadline_ms}"}

        said = hook(plugin, "tool.before@v1", USE, agent="support", session="s7")
        self.assertEqual(said["reason"], "support s7 5000")


SOURCE = """
    import time
    from mortise import Context, Plugin
    plugin = Plugin("test.plugin", version="1.0.0", concurrency=CONCURRENCY)
    @plugin.tool
    def echo(value: object) -> object:
        return value
    @plugin.hook("tool.before@v1")
    def guard(payload: dict, ctx: Context) -> dict:
        if payload["toolName"] == "wait":
            while True:
                ctx.check()
                time.sleep(0.002)
        if payload["toolName"] == "much":
            return {"allow": True, "payload": {"text": "a" * (10 << 20)}}
        if payload["toolName"] == "odd":
            return {"allow": True, "payload": {"text": float("nan")}}
        return {"allow": payload["toolName"] != "shell", "reason": ctx.agent}
    plugin.run()
"""


class Processes(unittest.TestCase):
    def test_hooks_answer_fail_and_are_cancelled(self) -> None:
        for concurrency in ("1", "4"):
            with self.subTest(concurrency), Peer(write_plugin(SOURCE.replace("CONCURRENCY", concurrency))) as plugin:
                plugin.initialize()

                def ask(id: int, tool: str, event: str = "tool.before@v1") -> None:
                    params = {"call": str(id), "event": event, "shape": "veto", "payload": {"toolName": tool}}
                    params.update(agent="support", deadline_ms=5000)
                    plugin.send({"jsonrpc": "2.0", "id": id, "method": "hook", "params": params})

                ask(11, "shell")
                self.assertEqual(plugin.receive()["result"], {"allow": False, "reason": "support"})
                for id, tool, code in ((12, "much", "limit_exceeded"), (13, "odd", "plugin_error")):
                    ask(id, tool)
                    self.assertEqual(plugin.receive()["error"]["data"]["code"], code)
                ask(14, "shell", "tool.after@v1")
                self.assertEqual(plugin.receive()["error"]["code"], -32601)
                ask(15, "wait")
                plugin.cancel("15")
                self.assertEqual(plugin.receive()["error"]["data"]["code"], "cancelled")
                self.assertEqual(plugin.call("echo", value=1), 1)
                self.assertEqual(plugin.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
