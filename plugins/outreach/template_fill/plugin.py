"""Template.Fill: the {placeholders} of a template, filled with values."""

from __future__ import annotations

from fill import BadTemplate, fill
from mortise import InvalidInput, Plugin

plugin = Plugin("Template.Fill", version="1.0.0")


@plugin.tool(name="Template.Fill")
def template_fill(template: str, values: dict) -> dict:
    """Fill the {placeholders} of a template with values."""
    try:
        text, unused = fill(template, values)
    except BadTemplate as err:
        raise InvalidInput(f"template: {err}", details={"missing": err.missing} if err.missing else None) from None
    return {"text": text, "unused": unused}


if __name__ == "__main__":
    plugin.run()
