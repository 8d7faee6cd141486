"""The contract of the tool, as far as its own code goes."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Contract(unittest.TestCase):
    def test_a_request_without_an_artifact_is_rejected(self) -> None:
        from tool import LineCounter

        self.assertFalse(LineCounter().validate_inputs({}).ok)


if __name__ == "__main__":
    unittest.main()
