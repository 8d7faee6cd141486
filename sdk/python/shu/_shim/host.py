"""The host object of one call: what the manifest declares is on it, and nothing else."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Line(Protocol):
        """Where services ask: the call of a served plugin, or a fake."""

        plugin: str
        user_id: str
        params: dict[str, Any]
        inline_bytes: int
        scratch: str

        async def ask(self, method: str, args: dict[str, Any]) -> Any:
            """Ask a service; raises what the host refused."""

        def ask_now(self, method: str, args: dict[str, Any]) -> Any:
            """Ask and wait, for what is no coroutine."""

        def log(self, level: str, message: str, fields: dict[str, Any]) -> None: ...


# What is on the host object, and the capability it takes.
NEEDS = {
    "audit": "audit",
    "auth": "auth",
    "cache": "cache",
    "cursor": "cursor",
    "http": "http",
    "identity": "identity",
    "kb": "kb",
    "ocr": "ocr",
    "query": "query",
    "rate": "rate_limit",
    "rate_limit": "rate_limit",
    "scheduler": "scheduler",
    "secrets": "secrets",
    "storage": "storage",
    "log": "",
    "logger": "",
    "utils": "",
}


# What the host of the contract has beside log and utils. Undeclared, these are denied; the other services then do not exist.
NAMED = ("http", "identity", "auth", "kb", "secrets", "storage", "cursor", "cache", "ocr")


class CapabilityDenied(Exception):
    """The plugin's manifest does not declare the capability. It is no AttributeError: hasattr lets it through."""


class Fixed:
    """What a plugin gets of the host. Nothing can be set on it."""

    __slots__ = ("_line",)
    _line: Line

    def __init__(self, line: Line) -> None:
        object.__setattr__(self, "_line", line)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"host services cannot be changed: {name} was not set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"host services cannot be changed: {name} was not deleted")


class Host(Fixed):
    """The third argument of execute."""

    __slots__ = ("_granted", "_made")
    _granted: frozenset[str]
    _made: dict[str, Any]

    def __init__(self, line: Line, capabilities: frozenset[str]) -> None:
        super().__init__(line)
        granted = capabilities | {"cursor"} if "kb" in capabilities else capabilities
        object.__setattr__(self, "_granted", granted)
        object.__setattr__(self, "_made", {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        need = NEEDS.get(name)
        if need is None or need and need not in self._granted:
            if name in NAMED:
                raise CapabilityDenied(f"Host capability '{name}' not declared in plugin manifest")
            raise AttributeError(f"the host has no attribute {name!r}")
        made = self._made
        if name not in made:
            made[name] = service(name, self._line)
        return made[name]

    def __dir__(self) -> list[str]:
        return [name for name, need in NEEDS.items() if not need or need in self._granted]


def service(name: str, line: Line) -> Any:
    """Return a service of the host by its name there. Its module is loaded with its first use."""
    if name == "http":
        from .http import Http

        return Http(line)
    if name == "kb":
        from .kb import KB

        return KB(line)
    if name in ("log", "logger"):
        from .log import Log

        return Log(line)
    if name == "utils":
        from .utils import Utils

        return Utils(line)
    from . import services

    return services.ALL[name](line)
