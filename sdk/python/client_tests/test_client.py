"""The client, against a host that serves."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import threading
import time
import unittest

from host import Host, code_of, the_host
from mortise_client import ApprovalPending, ArgumentsChanged, AsyncClient, Client, MortiseError, Pending, ToolCalls, tools_of


class Refusals(unittest.TestCase):
    def refused(self, code: str, ask: object, *arguments: object, **named: object) -> MortiseError:
        assert callable(ask)
        with self.assertRaises(MortiseError) as raised:
            ask(*arguments, **named)
        self.assertEqual(code_of(raised.exception), code)
        return raised.exception


class Against(Refusals):
    host: Host

    @classmethod
    def setUpClass(cls) -> None:
        cls.host = the_host()

    def waiting(self, key: str) -> Pending:
        pending = self.host.client.execute("mail/send", {"to": "eve"}, key=key).pending
        assert pending is not None
        return pending

    def test_operations_are_listed_and_described(self) -> None:
        found = {o.name: (o.kind, o.effects) for o in self.host.client.operations() if o.name.startswith("mail/")}
        self.assertEqual(
            found,
            {**{name: ("operator", ("mail_send",)) for name in ("mail/send", "mail/secret", "mail/ping")}, "mail/upper": ("tool", ())},
        )
        self.assertEqual((self.host.client.operation("mail/send").input_schema or {})["required"], ["to"])
        self.refused("not_found", self.host.client.operation, "mail/none")
        self.refused("invalid_input", self.host.client.operation, "../tokens")

    def test_an_operation_is_executed_once_for_a_key(self) -> None:
        client = self.host.client
        first = client.execute("mail/upper", {"text": "a"}, key="k1")
        self.assertEqual(first.data, "A")
        self.assertEqual(client.execute("mail/upper", {"text": "a"}, key="k1").call_id, first.call_id)
        self.refused("key_conflict", client.execute, "mail/upper", {"text": "b"}, key="k1")
        self.refused("invalid_input", client.execute, "mail/upper", {"txet": "b"})
        self.refused("invalid_input", client.execute, "mail/upper", {"text": float("nan")})
        self.refused("policy_denied", client.execute, "mail/secret", {})
        self.assertEqual(client.execute("mail/upper", {"text": "soon"}, wait=10).data, "SOON")

    def test_a_call_waits_for_a_person_and_its_approval_can_be_read(self) -> None:
        pending = self.waiting("k2")
        self.assertEqual(sorted(pending.to_dict()), ["approval_id", "call_id", "expires_at", "operation", "url"])
        self.assertEqual(pending.url, f"{self.host.url}/decide/{pending.approval_id}")
        elsewhere = Client(self.host.url, self.host.token, public_url="https://mortise.example.com/")
        joined = elsewhere.execute("mail/send", {"to": "eve"}, key="k2").pending
        self.assertEqual(joined and joined.url, f"https://mortise.example.com/decide/{pending.approval_id}")
        self.assertEqual(self.host.client.approval(pending.approval_id).state, "open")
        self.host.approve(pending)
        call = self.host.client.call(pending.call_id, wait=20)
        self.assertEqual((call.status, call.approval_state), ("succeeded", "consumed"))

    def test_arguments_that_changed_are_refused_by_the_adapter_and_by_the_host(self) -> None:
        calls = ToolCalls(self.host.client, "conversation")
        pending = calls.submit("mail/send", "c1", {"to": "ann", "text": "hi"}).pending
        assert pending is not None
        before = self.host.calls("mail/send")
        changed = {"to": "eve", "text": "hi"}
        with self.assertRaises(ArgumentsChanged) as known:  # as it remembers them: the host is not asked
            calls.submit("mail/send", "c1", changed)
        self.assertIsNone(known.exception.__cause__)
        another = ToolCalls(self.host.client, "conversation")  # which remembers nothing
        with self.assertRaises(ArgumentsChanged) as raised:
            another.submit("mail/send", "c1", changed)
        self.assertEqual(code_of(raised.exception.__cause__ or raised.exception), "key_conflict")
        joined = another.submit("mail/send", "c1", {"text": "hi", "to": "ann"})  # the order of members says nothing
        self.assertEqual(joined.call_id, pending.call_id)
        self.host.approve(pending)
        for asked in (calls, ToolCalls(self.host.client, "conversation")):  # after approval as before
            with self.assertRaises(ArgumentsChanged):
                asked.submit("mail/send", "c1", changed)
        self.assertEqual(calls.result("mail/send", "c1", {"to": "ann", "text": "hi"})["to"], "ann")
        self.assertEqual(self.host.calls("mail/send"), before)
        fresh = calls.submit("mail/send", "c2", changed).pending  # a call of its own, with an approval of its own
        assert fresh is not None
        self.assertNotIn(fresh.approval_id, (pending.approval_id, ""))
        with self.assertRaises(ApprovalPending):
            calls.result("mail/send", "c2", changed)

    def test_a_call_is_withdrawn(self) -> None:
        pending = self.waiting("k3")
        self.host.client.cancel(pending.call_id, "changed my mind")
        self.assertEqual(self.host.client.call(pending.call_id).outcome.error["code"], "cancelled")

    def test_a_token_is_sent_to_no_address_in_the_clear(self) -> None:
        self.refused("configuration", Client, "http://mortise.example.com", "t")
        self.refused("configuration", Client, "https://", "t")
        self.refused("configuration", Client, self.host.url, "")
        refusal = self.refused("unauthenticated", Client(self.host.url, "mrt_no").operation, "mail/send")
        self.assertEqual(refusal.status, 401)

    def test_the_asynchronous_client(self) -> None:
        async def ask() -> tuple[object, int]:
            client = AsyncClient(self.host.client)
            outcomes = await asyncio.gather(*(client.execute("mail/upper", {"text": str(n)}) for n in range(8)))
            return [outcome.data for outcome in outcomes], len(await client.operations("tool"))

        data, tools = asyncio.run(ask())
        self.assertEqual(data, [str(n) for n in range(8)])
        self.assertGreater(tools, 0)

    def test_the_number_of_tools_is_limited_and_names_are_such_as_models_accept(self) -> None:
        names = sorted(tool.name for tool in tools_of(self.host.client, ["mail/*"]))
        self.assertEqual(names, ["mail__ping", "mail__secret", "mail__send", "mail__upper"])
        self.refused("too_many_operations", tools_of, self.host.client, ["mail/*"], 2)


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        what = self.path.split("/")[4]
        answers: dict[str, tuple[int, dict[str, str], bytes]] = {
            "long": (200, {}, b'{"a":"' + b"x" * 5000 + b'"}'),
            "text": (200, {}, b"hello"),
            "away": (302, {"Location": "http://127.0.0.1:1/"}, b""),
            "busy": (429, {"Retry-After": "60"}, b'{"code":"rate_limited","detail":"slower","retryable":true}'),
        }
        status, headers, body = answers.get(what, (200, {}, b""))
        if what == "silent":
            time.sleep(1)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # the client has given up
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Bounds(Refusals):
    def test_answers_are_bounded(self) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.server_port}", "t", timeout=0.3, max_bytes=1000)
        try:
            self.refused("bad_response", client.operation, "long/x")
            self.refused("bad_response", client.operation, "text/x")
            self.refused("bad_response", client.operation, "away/x")
            self.assertTrue(self.refused("unreachable", client.operation, "silent/x").retryable)
            self.assertEqual(self.refused("rate_limited", client.operation, "busy/x").retry_after, 60)
        finally:
            server.shutdown()
            server.server_close()


if __name__ == "__main__":
    unittest.main()
