import json
import os
import unittest

from mapping import NotMapped, salesforce_case, slack_mention, university_portal

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def example(name):
    with open(os.path.join(HERE, "examples", name + ".input.json")) as file:
        return json.load(file)


def slack(**changes):
    given = example("slack_mention.question")
    return slack_mention(given["team_id"], changes.pop("event_id", given["event_id"]), dict(given["event"], **changes))


class Mapping(unittest.TestCase):
    def test_a_salesforce_case_is_a_ticket(self):
        got = salesforce_case(example("salesforce_case.created")["payload"])
        self.assertEqual(got["intent"]["type"], "Support.Ticket.Resolve")
        self.assertEqual(got["intent"]["payload"]["ticket_id"], "5005e00000Tt4nXAAR")
        self.assertEqual(got["principal"], {"provider": "salesforce", "external_id": "0055e000003SxPkAAK"})

    def test_a_case_that_changed_is_not_created(self):
        payload = example("salesforce_case.created")["payload"]
        payload["ChangeEventHeader"]["changeType"] = "UPDATE"
        with self.assertRaises(NotMapped):
            salesforce_case(payload)

    def test_a_portal_reports_a_status(self):
        given = example("university_portal.accepted")
        del given["event"]
        got = university_portal(**given)
        self.assertEqual(got["intent"], {
            "type": "Admission.Application.StatusUpdate",
            "payload": {"application_id": "A-2026-118", "status": "accepted", "previous_status": "in_review", "university": "example-edu"},
        })  # fmt: skip
        self.assertEqual(got["principal"]["external_id"], "example-edu/stu-77")

    def test_a_mention_is_a_question_without_the_mention(self):
        got = slack()
        self.assertEqual(got["intent"], {"type": "Support.QA.Answer", "payload": {"question": "what is the deadline for the travel grant?"}})
        self.assertEqual(got["principal"], {"provider": "slack", "external_id": "T061EG9R6/W021FGA1Z"})
        self.assertNotIn("ZZZZZZWSxiZZZ2yIvs3peJ", json.dumps(got))
        with self.assertRaises(NotMapped):
            slack(text=" <@U0LAN0Z89> ")

    def test_an_event_that_is_delivered_twice_has_one_key(self):
        self.assertEqual(slack(), slack())
        self.assertNotEqual(slack()["idempotency_key"], slack(event_id="Ev1")["idempotency_key"])
        self.assertLessEqual(len(slack(event_id="é" * 64)["idempotency_key"]), 255)


if __name__ == "__main__":
    unittest.main()
