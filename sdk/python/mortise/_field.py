"""Constraints on a parameter, beside its type."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class Field:
    """What a type alone cannot say: Annotated[int, Field(ge=1, description="pages")].

    `min_length` and `max_length` count characters, items or members, as the
    type has it. The host enforces all of them before the plugin is called.
    """

    def __init__(
        self,
        description: str | None = None,
        *,
        ge: float | None = None,
        gt: float | None = None,
        le: float | None = None,
        lt: float | None = None,
        multiple_of: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        pattern: str | None = None,
        format: str | None = None,
        examples: Sequence[Any] | None = None,
    ) -> None:
        self.min_length = min_length
        self.max_length = max_length
        self.keywords = {
            "description": description,
            "minimum": ge,
            "exclusiveMinimum": gt,
            "maximum": le,
            "exclusiveMaximum": lt,
            "multipleOf": multiple_of,
            "pattern": pattern,
            "format": format,
            "examples": examples,
        }

    def apply(self, schema: dict[str, Any]) -> None:
        """Add the keywords to a schema whose type is settled."""
        for name, value in self.keywords.items():
            if value is not None:
                schema[name] = value
        noun = {"array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
        if self.min_length is not None:
            schema["min" + noun] = self.min_length
        if self.max_length is not None:
            schema["max" + noun] = self.max_length
