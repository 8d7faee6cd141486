import unittest

from mortise import InvalidInput, contract
from mortise.testing import call
from plugin import plugin


def fill(template, **values):
    return call(plugin, "Template.Fill", {"template": template, "values": values}).data


class Fill(unittest.TestCase):
    def test_values_take_the_place_of_placeholders(self):
        self.assertEqual(fill("{a} and {b}, {a}", a="x", b=2, c=True), {"text": "x and 2, x", "unused": ["c"]})

    def test_it_keeps_the_contract_of_a_tool(self):
        contract.tool(plugin, "Template.Fill", {"template": "{a}", "values": {"a": "x"}}, between=[{"template": "{a}", "values": {"a": "y"}}])

    def test_doubled_braces_are_braces(self):
        self.assertEqual(fill("{{a}} {a}", a="x")["text"], "{a} x")

    def test_what_is_missing_is_named_once_each(self):
        with self.assertRaises(InvalidInput) as caught:
            fill("{a}{b}{a}{c}", c="x")
        self.assertEqual(caught.exception.details, {"missing": ["a", "b"]})
        self.assertIn("no value for a, b", str(caught.exception))

    def test_nothing_is_evaluated(self):
        for template in ("{a.__class__}", "{a[0]}", "{a!r}", "{a:>9}", "{0}", "{}", "{ a }", "{a", "a}", "{__class__}"):
            with self.subTest(template), self.assertRaises(InvalidInput):
                fill(template, a="x")

    def test_a_value_is_no_template(self):
        self.assertEqual(fill("{a}", a="{b} {{")["text"], "{b} {{")

    def test_what_comes_out_is_bounded(self):
        with self.assertRaises(InvalidInput):
            fill("{a}" * 5, a="x" * 60000)
        with self.assertRaises(InvalidInput):
            fill("{a}" + "y" * 60000, a="x" * 250000)


if __name__ == "__main__":
    unittest.main()
