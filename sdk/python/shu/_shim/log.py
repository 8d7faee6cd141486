"""host.log: records of the call. Methods are done when they return; awaiting them does no harm."""

from __future__ import annotations

import sys

from .host import Fixed
from .records import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .records import Done


class Log(Fixed):
    """Takes what a logger of the standard library takes: a message, its arguments, extra, exc_info."""

    __slots__ = ()

    def debug(self, msg: Any, *args: Any, **options: Any) -> Done:
        return self._log("debug", msg, args, options)

    def info(self, msg: Any, *args: Any, **options: Any) -> Done:
        return self._log("info", msg, args, options)

    def warning(self, msg: Any, *args: Any, **options: Any) -> Done:
        return self._log("warning", msg, args, options)

    warn = warning

    def error(self, msg: Any, *args: Any, **options: Any) -> Done:
        return self._log("error", msg, args, options)

    critical = error

    def exception(self, msg: Any, *args: Any, **options: Any) -> Done:
        return self._log("error", msg, args, {"exc_info": True, **options})

    def _log(self, level: str, msg: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Done:
        message = str(msg)
        if args:
            try:
                message = message % args
            except (TypeError, ValueError, KeyError):  # logging never fails a call
                message = " ".join([message, *map(repr, args)])
        extra = options.pop("extra", None)
        fault = options.pop("exc_info", None)
        fields = {str(name): value for name, value in (extra if isinstance(extra, dict) else {}).items()}
        fields.update((name, value) for name, value in options.items() if name not in ("stack_info", "stacklevel"))
        if fault:
            exc = fault if isinstance(fault, BaseException) else sys.exc_info()[1]
            if exc is not None:
                fields["exception"] = f"{type(exc).__name__}: {exc}"
        self._line.log(level, message, fields)
        return DONE
