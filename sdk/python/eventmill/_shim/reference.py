"""Reference data: the tool's own, and below it what the host has for all.

A file data/<key>.json, .yaml, .yml, .txt or .csv of the tool is its value of
that key and wins over the host's. JSON and YAML are read, the others are text;
YAML needs the package yaml.
"""

from __future__ import annotations

import logging
import os

from mortise._context import cut
from mortise._errors import PluginError, ServiceError
from mortise._session import error_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from mortise._context import Context

MAX_FILE = 64 << 20
_KINDS = (".json", ".yaml", ".yml", ".txt", ".csv")
TECHNIQUES = "mitre_techniques"  # what every host has
_absent = object()
_logger = logging.getLogger("eventmill.reference_data")


class Own:
    """The data directory of one tool; what was read stays read."""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.join(directory, "data")
        self._read: dict[str, Any] = {}
        self._files: dict[str, str] | None = None

    def files(self) -> dict[str, str]:
        """Return key -> file name."""
        if self._files is None:
            try:
                names = sorted(os.listdir(self._directory))
            except OSError:
                names = []
            self._files = {}
            for kind in _KINDS:
                for name in names:
                    if name.endswith(kind) and not name.startswith("."):
                        self._files.setdefault(name[: -len(kind)], name)
        return self._files

    def get(self, key: str, logger: logging.Logger) -> Any:
        """Return the value, _absent where there is none that can be read."""
        if key not in self._read:
            name = self.files().get(key)
            if name is None:
                return _absent
            try:
                self._read[key] = _load(os.path.join(self._directory, name))
            except (OSError, ValueError, RecursionError, ImportError) as exc:
                logger.warning("reference data %s is not used: data/%s: %s", key, name, error_message(exc))
                self._read[key] = _absent
        return self._read[key]


class ReferenceData:
    """The view of one call: get, keys, in. It has no subscript. What was found stays found in the processes that a tool forks; they can ask for nothing new."""

    def __init__(self, own: Own, ctx: Context, logger: logging.Logger) -> None:
        self._own = own
        self._ctx = ctx
        self._logger = logger
        self._hosts: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, default where neither the tool nor the host has one."""
        value = self._find(key)
        return default if value is _absent else value

    def keys(self) -> list[str]:
        """Return the keys of the tool's own data, that of the techniques, and those found with the host so far."""
        self._find(TECHNIQUES)
        found = [key for key, value in self._hosts.items() if value is not _absent]
        return sorted({*self._own.files(), *found})

    def values(self) -> list[Any]:
        """Return the values of keys(), without those that cannot be read."""
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[str, Any]]:
        """Return the keys with their values, without those that cannot be read."""
        found = ((key, self._find(key)) for key in self.keys())
        return [(key, value) for key, value in found if value is not _absent]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True  # the host may have a table that was never requested

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not _absent

    def _find(self, key: object) -> Any:
        if not isinstance(key, str) or not key:
            return _absent
        value = self._own.get(key, self._logger)
        if value is not _absent:
            return value
        if key not in self._hosts:
            self._hosts[key] = from_host(self._ctx, key, _absent)
        return self._hosts[key]


def from_host(ctx: Context, key: str, default: Any) -> Any:
    """Return the host's value of a key; one that it refuses is not there."""
    try:
        answer = ctx.service("reference_data.get", {"key": key})
    except ServiceError as exc:
        if exc.code == "unavailable":
            _logger.warning("reference data %s is not used: %s", cut(key, 200), error_message(exc))
        return default
    except PluginError as exc:
        if exc.code == "cancelled":
            raise
        return default  # a key that has no place in a frame
    if not isinstance(answer, dict) or not answer.get("found"):
        return default
    value = answer.get("value")
    if key == TECHNIQUES and not isinstance(value, dict):
        _logger.warning("reference data %s is not used: it is no object of techniques by their ids", key)
        return {}
    return value


def _load(path: str) -> Any:
    with open(path, "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise ValueError(f"larger than {MAX_FILE} bytes")
    text = data.decode("utf-8-sig")
    if path.endswith(".json"):
        import json

        return json.loads(text)
    if path.endswith((".yaml", ".yml")):
        return __import__("yaml").safe_load(text)
    return text
