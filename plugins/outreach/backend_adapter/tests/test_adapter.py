import copy
import json
import os
import unittest

from mapping import INTENTS
from mortise import PluginError, contract
from mortise.testing import call
from plugin import plugin

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(HERE, "examples", "inbound.started.input.json")) as file:
    EVENT = json.load(file)


def inbound(balance=10, **changes):
    answer = {"status_code": 200, "json": {"balance": balance}} if type(balance) is int else balance
    return call(plugin, "inbound", dict(copy.deepcopy(EVENT), **changes), services={"http.fetch": answer})


class Backend(unittest.TestCase):
    def test_an_event_is_a_request_of_its_user(self):
        request = inbound().data
        self.assertEqual(request["intent"], {"type": "Funding.Outreach.Email.Generate", "payload": EVENT["payload"]})
        self.assertEqual(request["principal"], {"provider": "platform", "external_id": "canapply/stu-77"})
        self.assertEqual(request["context"]["request"], {"scope": "platform-canapply"})

    def test_it_keeps_the_contract_of_an_adapter(self):
        credits = {"http.fetch": {"status_code": 200, "json": {"balance": 10}}}
        contract.adapter(plugin, "inbound", EVENT, intent="Funding.Outreach.Email.Generate", services=credits)
        told = {"url": "http://127.0.0.1:8025/outcomes", "reference": "platform:7f", "status": "succeeded", "text": "It is sent."}
        written = {"operations.call": {"status": "succeeded", "data": {"status": 201}}}
        contract.adapter(plugin, "outbound", told, through=["ExternalSystem.WriteOutcome"], services=written)

    def test_the_same_event_is_the_same_request_whatever_is_left(self):
        self.assertEqual(inbound(10).data, inbound(5).data)
        keys = {inbound(**change).data["idempotency_key"] for change in ({}, {"id": "2"}, {"tenant": "t2"})}
        self.assertEqual(len(keys), 3)

    def test_credits_are_asked_of_the_backend_and_suffice(self):
        for type_of, (_, needed) in INTENTS.items():
            self.assertEqual(inbound(needed, type=type_of).data["intent"]["type"], INTENTS[type_of][0])
            with self.assertRaises(PluginError) as caught:
                inbound(needed - 1, type=type_of, credits={"balance": 1000})
            self.assertEqual((caught.exception.code, caught.exception.details), ("INSUFFICIENT_CREDITS", {"needed": needed, "balance": needed - 1}))
        [(method, args)] = inbound().requests
        self.assertEqual((method, args["url"], args.get("method", "GET")), ("http.fetch", "http://127.0.0.1:8025/credits/canapply/stu-77", "GET"))

    def test_without_a_balance_nothing_is_asked_for(self):
        for answer, code in (
            ({"status_code": 404}, "UNKNOWN_USER"),
            ({"status_code": 500}, "CREDITS_UNKNOWN"),
            ({"status_code": 200, "json": {"balance": "10"}}, "CREDITS_UNKNOWN"),
            ({"status_code": 200, "json": {"balance": True}}, "CREDITS_UNKNOWN"),
            ({"status_code": 200, "body": "10"}, "CREDITS_UNKNOWN"),
        ):
            with self.assertRaises(PluginError) as caught:
                inbound(answer)
            self.assertEqual(caught.exception.code, code)

    def test_rights_that_an_event_claims_go_no_further(self):
        request = inbound(scopes=["*"], principal={"type": "user", "id": "local:owner"}).data
        self.assertNotIn("local:owner", json.dumps(request))
        self.assertNotIn('"*"', json.dumps(request))

    def test_an_outcome_is_written_by_the_operator_and_says_what_it_cost(self):
        asked = []

        def write(args):
            asked.append(args)
            return {"status": "succeeded", "data": {"status_code": 201}}

        given = {"url": "http://127.0.0.1:8025/outcomes", "reference": "platform:1", "text": "done", "intent": "Funding.Outreach.Email.Send"}
        for status in ("succeeded", "failed"):
            self.assertEqual(call(plugin, "outbound", dict(given, status=status), services={"operations.call": write}).data["status"], "succeeded")
        self.assertEqual([one["operation"] for one in asked], ["ExternalSystem.WriteOutcome"] * 2)
        self.assertEqual(asked[0]["input"]["outcome"]["data"], {"credits_used": 2})
        self.assertNotIn("data", asked[1]["input"]["outcome"])


if __name__ == "__main__":
    unittest.main()
