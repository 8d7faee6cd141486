"""Objects from the host, whose members plugins read as keys and as attributes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Generator


class Record(dict):  # type: ignore[type-arg]
    """A dict whose members are attributes too: result["text"] and result.text."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name}; there are {', '.join(map(str, self)) or 'no members'}") from None


class Known(Record):
    """A Record that is here already, and may be awaited all the same."""

    def __await__(self) -> Generator[Any, Any, Known]:
        return self
        yield  # makes it a generator


class Mail(str):
    """An address that is here already, and may be awaited all the same."""

    def __await__(self) -> Generator[Any, Any, str]:
        return str(self)
        yield  # makes it a generator


class Taken(Record):
    """What a rate limit said: true where the call may go on."""

    def __bool__(self) -> bool:
        return bool(self.get("allowed"))


class Headers(dict):  # type: ignore[type-arg]
    """Headers of an answer by their names in lower case, found in any case."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())


class Done:
    """What a method returns that is done at once, for those who await it."""

    def __await__(self) -> Generator[Any, Any, None]:
        return None
        yield  # makes it a generator


DONE = Done()


def record(value: Any) -> Any:
    """Return an object of the host as a Record, anything else as it is."""
    return Record(value) if isinstance(value, dict) else value
