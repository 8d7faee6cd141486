"""Log records of tools, and of what they load, on their way to the host."""

from __future__ import annotations

import logging
import os
import sys
import threading

from mortise._context import cut
from mortise._errors import MortiseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mortise._context import Context

MAX_RECORDS = 1000  # of one call
MAX_EXCEPTION = 8192
MAX_PRINTED = 3800  # what several processes write to a pipe stays whole up to 4096
MAX_LINES = 100  # of a text


class Records(logging.Handler):
    """Sends the records of the call that runs; those of threads that an earlier call left and of forked processes go to standard error."""

    def __init__(self) -> None:
        super().__init__()
        self._ctx: Context | None = None
        self._sent = 0
        self._strangers: set[int | None] = set()

    def begin(self, ctx: Context) -> None:
        """Send the records of a call from here on."""
        main = threading.main_thread()
        self._strangers = {thread.ident for thread in threading.enumerate() if thread is not main}
        self._ctx, self._sent = ctx, 0
        # Code that configures logging may have taken us off.
        tools = logging.getLogger("eventmill")
        tools.propagate = False
        if tools.level == logging.NOTSET:
            tools.setLevel(logging.INFO)
        for logger in (tools, logging.getLogger()):
            if self not in logger.handlers:
                logger.addHandler(self)

    def end(self) -> None:
        self._ctx = None

    def tell(self, text: str) -> None:
        """Send the lines of a text, as if they had been printed. Unlike what is printed, they are there before the answer is."""
        lines = text.splitlines()
        if len(lines) > MAX_LINES:
            lines[MAX_LINES // 2 : -MAX_LINES // 2] = [f"... {len(lines) - MAX_LINES} lines ..."]
        for line in lines:
            if self._ctx is None:
                print(line, file=sys.stderr)
                continue
            try:
                self._ctx.log.error(cut(line, 2000))
            except MortiseError:  # it cannot be said
                return

    def emit(self, record: logging.LogRecord) -> None:
        ctx = self._ctx
        message = _message(record)
        if ctx is None or record.thread in self._strangers:
            if record.exc_info:
                message = f"{cut(message, MAX_PRINTED // 2)}\n{_exception(record)}"
            said = f"{record.levelname.lower()}: {record.name}: {cut(message, MAX_PRINTED)}\n"
            print(said, end="", file=sys.stderr)  # at once: with several processes the end of a line may come after the next
            return
        self._sent += 1
        if self._sent > MAX_RECORDS + 1:
            return
        if self._sent > MAX_RECORDS:
            ctx.log.warning(f"more than {MAX_RECORDS} log records; those that follow are dropped")
            return
        fields = {"logger": cut(record.name, 200)}
        if record.exc_info:
            fields["exception"] = cut(_exception(record), MAX_EXCEPTION)
        try:
            ctx.log._log(_level(record.levelno), message, fields)
        except MortiseError:  # it cannot be said; a log record fails nothing
            pass


def _level(number: int) -> str:
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    return "info" if number >= logging.INFO else "debug"


def _exception(record: logging.LogRecord) -> str:
    return logging.Formatter().formatException(record.exc_info)  # type: ignore[arg-type]


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit
        return f"{record.msg!s} {record.args!r}" if isinstance(record.msg, str) else "a record that cannot be written"


RECORDS = Records()
os.register_at_fork(after_in_child=RECORDS.end)  # a child has no call
