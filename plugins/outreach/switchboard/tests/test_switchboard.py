import copy
import json
import os
import unittest

from mortise import PluginError
from mortise.testing import call
from plugin import plugin

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(HERE, "examples", "Switchboard.send.input.json")) as file:
    SEND = json.load(file)
with open(os.path.join(HERE, "manifest.json")) as file:
    ALLOWED = {name.partition("@")[0] for name in json.load(file)["allowed_actions"]}


def ask(change=lambda request: None, **brief):
    request = copy.deepcopy(SEND)
    change(request)
    return call(plugin, "Switchboard", dict(request, **brief)).data


def set_type(name):
    return lambda request: request["intent"].update(type=name)


def lookup(tree, path):
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


class Switchboard(unittest.TestCase):
    def grounded(self, answer, request):
        for signal in answer["rationale"]["signals"]:
            kind, _, rest = signal.partition(":")
            if kind == "intent_type":
                self.assertEqual(rest, request["intent"]["type"])
            elif kind == "context":
                self.assertIsNotNone(lookup(request["context"], rest))
            else:
                self.assertIn(signal[len("has_") :], request["intent"]["payload"])

    def test_send_is_four_steps_and_the_last_two_are_gated(self):
        answer = ask()
        self.assertEqual(answer["kind"], "plan_proposal")
        self.assertEqual(
            [(s["step_id"], s["action"], s["gate"]) for s in answer["proposed_plan"]["steps"]],
            [
                ("s1", "Email.GenerateDraft", "none"),
                ("s2", "Text.Score", "none"),
                ("s3", "Apply.EmailDraft", "human_apply"),
                ("s4", "Gmail.Send", "human_apply"),
            ],
        )
        by_name = {action["operator"]: action["payload"] for action in answer["required_actions"]}
        self.assertLess(set(by_name), ALLOWED)
        self.assertEqual(by_name["Apply.EmailDraft"]["draft"], {"$from": "s1", "pointer": "/draft"})
        self.assertEqual(by_name["Apply.EmailDraft"]["id"], "funding-2026-910")
        self.assertEqual(by_name["Gmail.Send"]["to"], SEND["intent"]["payload"]["to"])
        self.assertTrue(all(action["idempotency_hint"] for action in answer["required_actions"]))
        self.grounded(answer, SEND)
        self.assertIn("has_professor_id", answer["rationale"]["signals"])

    def test_from_a_document_the_steps_find_out_what_is_not_known(self):
        with open(os.path.join(HERE, "examples", "Switchboard.start.input.json")) as file:
            start = json.load(file)
        answer = call(plugin, "Switchboard", start).data
        steps = answer["proposed_plan"]["steps"]
        self.assertEqual([step["action"] for step in steps if step["gate"] == "human_apply"], ["Apply.EmailDraft", "Gmail.Send"])
        self.assertEqual([step["step_id"] for step in steps], [f"d{n}" for n in range(1, 9)])
        given = {action["operator"]: action["payload"] for action in answer["required_actions"]}
        self.assertEqual(set(given), ALLOWED - {"Text.Score"})
        self.assertEqual(given["Email.GenerateDraft"]["student"]["name"], {"$from": "d1", "pointer": "/profile/name"})
        self.assertEqual(given["Gmail.Send"]["body"], {"$from": "d6", "pointer": "/draft/body"})
        self.assertEqual(given["Gmail.Send"]["to"], start["intent"]["payload"]["to"])
        self.grounded(answer, start)
        start["context"]["student"]["profile"]["name"] = "Ada King"
        known = call(plugin, "Switchboard", start).data["required_actions"][3]["payload"]["student"]
        self.assertEqual((known["name"], known["degree"]), ("Ada King", {"$from": "d1", "pointer": "/profile/degree"}))
        del start["intent"]["payload"]["document"]
        self.assertIn("document", call(plugin, "Switchboard", start).data["suggestions"][0]["text"])

    def test_a_follow_up_is_for_another_agent(self):
        answer = ask(set_type("Funding.Outreach.FollowUp"))
        self.assertEqual((answer["kind"], answer["suggestions"][0]["text"]), ("next_step_suggestions", "Ask the agent FollowUp.Suggest."))

    def test_generate_is_the_first_two(self):
        answer = ask(set_type("Funding.Outreach.Email.Generate"))
        self.assertEqual([s["action"] for s in answer["proposed_plan"]["steps"]], ["Email.GenerateDraft", "Text.Score"])

    def test_the_same_request_is_the_same_proposal(self):
        self.assertEqual(ask(), ask())
        other = ask(lambda request: request["intent"]["payload"].update(tone="warm"))
        self.assertNotEqual(ask()["required_actions"][3]["idempotency_hint"], other["required_actions"][3]["idempotency_hint"])

    def test_another_intent_gets_suggestions(self):
        answer = ask(set_type("Support.Ticket.Resolve"))
        self.assertEqual((answer["kind"], len(answer["suggestions"])), ("next_step_suggestions", 1))
        self.assertNotIn("proposed_plan", answer)

    def test_what_only_the_caller_knows_is_asked_for(self):
        for name in ("professor_id", "to", "from"):
            with self.subTest(name):
                answer = ask(lambda request, name=name: request["intent"]["payload"].pop(name))
                self.assertEqual(answer["kind"], "next_step_suggestions")
                self.assertIn(name, answer["suggestions"][0]["text"])
                self.assertNotIn(f"has_{name}", answer["rationale"]["signals"])

    def test_context_that_says_too_little_is_named(self):
        with self.assertRaises(PluginError) as caught:
            ask(lambda request: request["context"]["professor"].update(entity={"field": "x"}))
        self.assertEqual((caught.exception.code, caught.exception.details), ("needs_context", {"missing": ["professor.entity.name"]}))

    def test_what_may_not_be_proposed_is_not(self):
        registry = [{"name": name} for name in sorted(ALLOWED - {"Gmail.Send"})]
        answer = ask(tool_registry=registry)
        self.assertEqual(answer["kind"], "next_step_suggestions")
        self.assertIn("Gmail.Send", answer["suggestions"][0]["text"])
        self.assertEqual(ask(tool_registry=registry + [{"name": "Gmail.Send"}])["kind"], "plan_proposal")

    def test_the_draft_gets_no_more_than_it_needs(self):
        answer = ask(lambda request: request["context"]["student"]["profile"].update(passport="X123"))
        self.assertNotIn("X123", json.dumps(answer))


if __name__ == "__main__":
    unittest.main()
