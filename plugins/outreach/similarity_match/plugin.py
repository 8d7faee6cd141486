"""Similarity.Match: which texts of two lists are about the same, and by which terms.

For a student and a professor: interests on one side, papers on the other.
"""

from __future__ import annotations

from matching import match
from mortise import Plugin

plugin = Plugin("Similarity.Match", version="1.0.0")


@plugin.tool(name="Similarity.Match")
def similarity_match(wanted: list, offered: list, limit: int = 10) -> dict:
    """Find which texts of two lists are about the same, and by which terms."""
    return match(wanted, offered, limit)


if __name__ == "__main__":
    plugin.run()
