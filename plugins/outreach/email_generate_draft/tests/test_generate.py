import itertools
import re
import unittest

from draft import TONES
from mortise import InvalidInput
from mortise.testing import call
from plugin import plugin

PROFESSOR = {"name": "Marie Curie", "field": "radioactivity", "papers": ["On polonium", "Rays of uranium compounds"]}
STUDENT = {"name": "Ada Lovelace", "degree": "MSc in physics", "interests": ["uranium minerals", "computing"]}


def fill(args):
    """Template.Fill, as far as these templates need it."""
    values = args["input"]["values"]
    text = re.sub(r"\{(\w+)\}", lambda found: values[found[1]], args["input"]["template"])
    return {"status": "succeeded", "data": {"text": text, "unused": []}}


def generate(**changes):
    input = dict({"professor": PROFESSOR, "student": STUDENT, "to": "m@example.org", "from": "a@example.edu"}, **changes)
    return call(plugin, "Email.GenerateDraft", input, services={"operations.call": fill})


class Generate(unittest.TestCase):
    def test_a_draft_is_addressed_and_personal(self):
        data = generate().data
        self.assertEqual((data["draft"]["to"], data["draft"]["from"]), ("m@example.org", "a@example.edu"))
        for text in ("Curie", "Rays of uranium compounds", "uranium minerals", "Ada Lovelace", "MSc in physics"):
            self.assertIn(text, data["draft"]["body"])
        self.assertEqual(data["words"], len(data["draft"]["body"].split()))
        self.assertEqual(data, generate().data)

    def test_every_tone_reads_with_and_without_papers_and_interests(self):
        for tone, papers, interests in itertools.product(TONES, ([], PROFESSOR["papers"]), ([], STUDENT["interests"])):
            with self.subTest(tone=tone, papers=papers, interests=interests):
                draft = generate(tone=tone, professor=dict(PROFESSOR, papers=papers), student=dict(STUDENT, interests=interests)).data["draft"]
                self.assertNotRegex(draft["body"], r"[{}]|None|\n\n\n")
                self.assertEqual(draft["subject"], "Question about your work on radioactivity")

    def test_a_subject_that_is_given_stays(self):
        self.assertEqual(generate(subject="Hello").data["draft"]["subject"], "Hello")

    def test_only_the_tool_is_asked(self):
        self.assertEqual({(method, args["operation"]) for method, args in generate().requests}, {("operations.call", "Template.Fill")})

    def test_what_it_does_not_know_is_refused(self):
        for changes in ({"tone": "rude"}, {"cc": "x@example.org"}):
            with self.subTest(changes), self.assertRaises(InvalidInput):
                generate(**changes)


if __name__ == "__main__":
    unittest.main()
