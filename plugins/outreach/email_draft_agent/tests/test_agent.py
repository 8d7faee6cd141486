import copy
import json
import os
import unittest

from mortise import PluginError, contract
from mortise.testing import call
from plugin import plugin

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(HERE, "examples", "Email.DraftAgent.warm.input.json")) as file:
    WARM = json.load(file)
LENGTHS = {"formal": 150, "warm": 120, "brief": 60}


def write(args):
    """Email.GenerateDraft, as far as the agent sees it."""
    given = args["input"]
    draft = {"subject": "s", "body": f"{given['tone']} {given['professor']['name']}"}
    return {"status": "succeeded", "data": {"draft": draft, "words": LENGTHS[given["tone"]]}}


def ask(change=lambda request: None):
    request = copy.deepcopy(WARM)
    change(request)
    return call(plugin, "Email.DraftAgent", request, services={"operations.call": write})


class DraftAgent(unittest.TestCase):
    def test_a_draft_is_its_output(self):
        answer = ask().data
        self.assertEqual((answer["kind"], answer["step_output"]["tone"]), ("step_output", "warm"))
        self.assertEqual(answer["rationale"]["signals"], ["intent_type:Funding.Outreach.Email.Generate", "has_to", "context:student.profile", "context:professor.entity"])
        self.assertNotIn("proposed_plan", answer)
        self.assertEqual(answer, ask().data)

    def test_it_keeps_the_contract_of_an_agent(self):
        with open(os.path.join(HERE, "manifest.json")) as file:
            manifest = json.load(file)
        promised = {"allowed": manifest["allowed_actions"], "needs": manifest["requires"]["context_fields"]}
        contract.agent(plugin, "Email.DraftAgent", WARM, services={"operations.call": write}, **promised)

    def test_only_the_operator_without_effects_is_asked(self):
        self.assertEqual({(method, args["operation"]) for method, args in ask().requests}, {("operations.call", "Email.GenerateDraft")})

    def test_a_limit_of_words_takes_a_shorter_tone(self):
        limited = ask(lambda r: r["constraints"].update(tone="formal", max_words=100)).data
        self.assertEqual(limited["step_output"]["tone"], "brief")
        never = ask(lambda r: r["constraints"].update(max_words=20)).data
        self.assertIn("more than 20", never["suggestions"][0]["text"])
        self.assertLess(never["confidence"], limited["confidence"])

    def test_a_tone_of_the_payload_stays(self):
        answer = ask(lambda r: (r["intent"]["payload"].update(tone="formal"), r["constraints"].update(max_words=100))).data
        self.assertEqual(answer["step_output"]["tone"], "formal")

    def test_what_it_is_not_told_is_asked_for(self):
        for change, missing in (
            (lambda r: r["context"].pop("student"), ["student.profile.name", "student.profile.degree"]),
            (lambda r: r["context"]["professor"]["entity"].update(field=" "), ["professor.entity.field"]),
        ):
            with self.assertRaises(PluginError) as caught:
                ask(change)
            self.assertEqual((caught.exception.code, caught.exception.details), ("needs_context", {"missing": missing}))

    def test_the_operator_gets_no_more_than_it_needs(self):
        outcome = ask(lambda r: r["context"]["student"]["profile"].update(passport="X123"))
        self.assertNotIn("X123", json.dumps(outcome.requests))


if __name__ == "__main__":
    unittest.main()
