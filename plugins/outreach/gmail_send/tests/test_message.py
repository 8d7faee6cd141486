import unittest
from datetime import datetime, timezone
from email import message_from_bytes
from email.policy import default
from email.utils import parsedate_to_datetime

from message import BadMail, Mailbox, build, date_of, message_id

DATE = datetime(2026, 3, 1, 12, 0, 5, tzinfo=timezone.utc)


def mail(sender="ada@example.edu", to=("b@example.org",), subject="Hello", body="Hi\n"):
    return build(Mailbox(sender, "from"), [Mailbox(t, "to") for t in to], subject, body, "<1@example.edu>", DATE)


class Message(unittest.TestCase):
    def test_what_is_written_reads_back(self):
        subjects = ["Hello", "Grüße aus Köln", "x" * 500, "wörd " * 90, "a  b", "=?utf-8?q?sly?=", "word " * 80 + "end", "\U0001f600" * 60]
        bodies = ["Hi\n", "é" * 3000, "a = b\nFrom here\n.\n", "tab\t\nspace \n", "no end", "long " * 400, "\r\nmac\rdos\r\n"]
        for subject in subjects:
            for body in bodies:
                with self.subTest(subject=subject[:20], body=body[:20]):
                    raw = mail("Zoë Z <zoe@example.edu>", ["\"Curie, M.\" <m@example.org>", "n@ex.org"], subject, body)
                    raw.decode("ascii")
                    self.assertNotIn(b"\n", raw.replace(b"\r\n", b""))
                    self.assertNotIn(b"\r", raw.replace(b"\r\n", b""))
                    self.assertLessEqual(max(map(len, raw.split(b"\r\n"))), 78)
                    read = message_from_bytes(raw, policy=default)
                    self.assertEqual(read.defects, [])
                    self.assertEqual(read["subject"], subject)
                    text = body.replace("\r\n", "\n").replace("\r", "\n")
                    got = read.get_content().replace("\r\n", "\n")
                    self.assertEqual(got, text if text.endswith("\n") else text + "\n")
                    self.assertEqual([a.addr_spec for a in read["to"].addresses], ["m@example.org", "n@ex.org"])
                    self.assertEqual(read["to"].addresses[0].display_name, "Curie, M.")
                    self.assertEqual(read["from"].addresses[0].display_name, "Zoë Z")
                    self.assertEqual(parsedate_to_datetime(read["date"]), DATE)
                    self.assertEqual(read["message-id"], "<1@example.edu>")

    def test_a_header_cannot_be_injected(self):
        bad = ["x\r\nBcc: all@example.org", "x\nBcc: a@b.cd", "x\rBcc: a@b.cd", "x\x00", "x\x0b", "x\u2028y", "x\x85y"]
        for text in bad:
            with self.subTest(text), self.assertRaises(BadMail):
                mail(subject=text)
            with self.subTest(text), self.assertRaises(BadMail):
                mail(sender=text + " <ada@example.edu>")
            with self.subTest(text), self.assertRaises(BadMail):
                mail(to=["b@example.org" + text])

    def test_an_address_is_one_address(self):
        bad = [
            "", "ada", "@example.edu", "ada@", "a@b@c.de", "a b@example.edu", "ada@example.edu, eve@example.org",
            "ada@example.edu eve@example.org", "<ada@example.edu", "Ada ada@example.edu", "ada@exa mple.edu", "a..b@example.edu",
            ".a@example.edu", "ada@-x.edu", "ada@example..edu", "é@example.edu", "x" * 65 + "@example.edu", "Ada, Eve <ada@example.edu>",
            "\"Ada <ada@example.edu>", "ada@example.edu<eve@example.org>", "ada@example.edu(eve)", "ada@[127.0.0.1]",
        ]  # fmt: skip
        for text in bad:
            with self.subTest(text), self.assertRaises(BadMail):
                Mailbox(text, "to")
        self.assertEqual(Mailbox("Ada <ada@bücher.example>", "to").address, "ada@xn--bcher-kva.example")
        self.assertEqual(Mailbox(" ada@Example.EDU ", "to").address, "ada@example.edu")

    def test_identity_follows_the_key(self):
        self.assertEqual(message_id("t", "k", "e.x"), message_id("t", "k", "e.x"))
        self.assertEqual(len({message_id(t, k, "e.x") for t in "ab" for k in ("k", "l")}), 4)
        key = "p:019b76da-a800-7000-8000-000000000000/s4"
        self.assertEqual(date_of("", key), datetime(2026, 1, 1, tzinfo=timezone.utc))
        self.assertLess(abs((date_of("k:demo") - datetime.now(timezone.utc)).total_seconds()), 60)


if __name__ == "__main__":
    unittest.main()
