"""What a docstring tells: a description, and a text for each parameter."""

from __future__ import annotations


def parse_docstring(doc: str | None) -> tuple[str, dict[str, str]]:
    """Return the first paragraph and the texts of a Google-style Args section, by name."""
    lines = (doc or "").expandtabs().strip().splitlines()
    headings = ("Args:", "Attributes:")
    first = next((n for n, line in enumerate(lines) if line.strip() in ("", *headings)), len(lines))
    summary = " ".join(line.strip() for line in lines[:first])

    texts: dict[str, str] = {}
    start = next((n for n, line in enumerate(lines) if line.strip() in headings), len(lines))
    outer = inner = -1
    name = ""
    for line in lines[start:]:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if outer < 0:
            outer = indent
        elif not text:
            continue
        elif indent <= outer:
            break
        elif inner < 0 or indent <= inner:
            inner = indent
            head, _, tail = text.partition(":")
            name = head.split(" ")[0].lstrip("*")
            texts[name] = tail.strip()
        else:
            texts[name] = f"{texts[name]} {text}"
    return summary, texts
