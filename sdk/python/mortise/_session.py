"""Protocol version 2 with one call at a time, on one thread.

The main thread reads a frame, runs it and writes the answer. While a call
runs, there is no other reader: the call itself reads when it waits for a
service, and polls, without waiting, when it checks for cancellation or reports
progress. Requests that arrive then are queued.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock
from time import monotonic

from ._context import Context, cut
from ._errors import SPOKEN, Cancelled, MortiseError, PluginError, ServiceError
from ._result import Result
from ._start import leave
from ._wire import dumps, loads, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._hook import Hook
    from ._plugin import Operation, Plugin
    from ._wire import Wire

POLL_SECONDS = 0.005
TURN_SECONDS = 0.02


class Session:
    """A conversation with the host, and the Host of its contexts."""

    def __init__(self, plugin: Plugin, wire: Wire) -> None:
        self.paths: dict[str, str] = {}
        self.fd = wire.fd
        self._plugin = plugin
        self._wire = wire
        self._frame_bytes = 4 << 20
        self._calls: dict[str, Context] = {}  # running, by token
        self._queue: list[dict[str, Any]] = []  # requests that came while a call ran
        self._reading = allocate_lock()  # held by the thread that reads; guards _queue and _answers
        self._answers: dict[str, dict[str, Any]] = {}
        self._waiting: set[str] = set()  # ids of our requests without an answer so far
        self._asking = allocate_lock()  # guards the next
        self._asked = 0
        self._next_poll = 0.0

    # Serving.

    def serve(self, line: bytes | None) -> None:
        """Serve from the first line until shutdown or the end of input."""
        frame = None if line is None else self._parse(line)
        while frame is not None and self._handle(frame):
            with self._reading:
                frame = self._queue.pop(0) if self._queue else self._read()

    def _read(self) -> dict[str, Any] | None:
        line = self._wire.read_line()
        return None if line is None else self._parse(line)

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            return loads(line)
        except (ValueError, RecursionError) as exc:
            fault = exc
        try:  # valid JSON may still hold a number that Python will not read
            frame = loads(line, short=True)
        except (ValueError, RecursionError):
            leave(1, f"mortise: the host wrote something that is no frame: {fault}")
        return {"method": "$/refuse", "id": frame.get("id"), "message": str(fault)}

    def _handle(self, frame: dict[str, Any]) -> bool:
        """Act on a frame; False ends the session."""
        method = frame.get("method")
        if method == "execute" or method == "preview" or method == "reconcile" or method == "hook":
            self._execute(frame)
        elif method is None or method == "$/cancel":
            self._note(frame)
        elif "id" not in frame:
            pass  # a notification from the future
        elif method == "initialize":
            self._initialize(frame)
        elif method == "describe":
            self._describe(frame)
        elif method == "shutdown":
            self._respond(frame["id"], "{}")
            return False
        elif method == "$/refuse":
            self._fail(frame["id"], PluginError(frame["message"], code="invalid_input"))
        else:
            self._refuse(frame["id"], -32601, f"no method {method!r}")
        return True

    def _initialize(self, frame: dict[str, Any]) -> None:
        params = frame.get("params") or {}
        self.paths = params.get("paths") or {}
        self._frame_bytes = (params.get("limits") or {}).get("frame_bytes") or self._frame_bytes
        plugin = self._plugin
        answer = {
            "protocol": "2",
            "plugins": [{"name": plugin.name, "version": plugin.version}],
            "concurrency": plugin.concurrency,
            "features": ["cancel", "emit"],
        }
        self._respond(frame["id"], dumps(answer))

    def _describe(self, frame: dict[str, Any]) -> None:
        try:
            self._respond(frame["id"], dumps({"plugins": [self._plugin.describe()]}))
        except Exception as exc:
            self._fail(frame["id"], exc)

    # Calls.

    def _execute(self, frame: dict[str, Any]) -> None:
        params = frame.get("params") or {}
        op = self._operation(frame, params)
        if op is not None:
            if op.wants_context:
                ctx = self._calls[params.get("call", "")] = Context(self, params)
                self._run(frame["id"], op, params, ctx)
            else:
                self._run(frame["id"], op, params, None)

    def _operation(self, frame: dict[str, Any], params: dict[str, Any]) -> Operation | Hook | None:
        if frame["method"] == "hook":
            return self._hook(frame, params)
        name = params.get("operation", "")
        op = self._plugin.operations.get(name[name.rfind("/") + 1 :])
        if op is None:
            self._refuse(frame["id"], -32602, f"{self._plugin.name} has no operation {name!r}")
        elif frame["method"] != "execute":
            question: str = frame["method"]
            op = getattr(op, question)
            if op is None:
                self._refuse(frame["id"], -32601, f"{name} has no {question}")
        return op

    def _hook(self, frame: dict[str, Any], params: dict[str, Any]) -> Hook | None:
        hook = self._plugin.hooks.get(params.get("event", ""))
        if hook is None:
            self._refuse(frame["id"], -32601, f"{self._plugin.name} has no hook of {params.get('event')!r}")
        params["context"] = {name: params[name] for name in ("event", "agent", "session") if name in params}
        return hook

    def _run(self, id: Any, op: Operation | Hook, params: dict[str, Any], ctx: Context | None) -> None:
        try:
            if op.question == "hook":
                result = dumps_result(op.answer(params, ctx))
            elif op.question:
                from ._question import answer

                result = dumps_result(answer(op, params, ctx))
            else:
                value = op.call(params.get("input"), ctx)
                if isinstance(value, Result):
                    result = dumps_result(value.members())
                else:
                    result = '{"status":"succeeded","data":' + dumps_result(value) + "}"
            self._end(ctx)
            self._respond(id, result)
        except BaseException as exc:
            self._end(ctx)
            self._fail(id, exc)

    def _end(self, ctx: Context | None) -> None:
        """End a call, before the host hears of it: a thread that goes on must not read what the host says then."""
        if ctx is not None:
            ctx._open = False
            self._calls.pop(ctx._call, None)

    def _respond(self, id: Any, result: str) -> None:
        number = id if type(id) is int else dumps(id)
        self._wire.write(pack(f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}\n', self._frame_bytes))

    def _fail(self, id: Any, exc: BaseException) -> None:
        error: dict[str, Any] = {"code": -32000, "message": error_message(exc), "data": error_data(exc)}
        try:
            data = self._pack({"jsonrpc": "2.0", "id": id, "error": error})
        except PluginError:  # the details are not JSON, or too much of it
            error["data"]["details"] = {}
            data = self._pack({"jsonrpc": "2.0", "id": id, "error": error})
        self._wire.write(data)

    def _refuse(self, id: Any, code: int, message: str) -> None:
        error = {"code": code, "message": cut(message, 2048)}
        self._wire.write(self._pack({"jsonrpc": "2.0", "id": id, "error": error}))

    def _pack(self, frame: dict[str, Any]) -> bytes:
        return pack(dumps_result(frame) + "\n", self._frame_bytes)

    # The Host of a Context.

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification; raises PluginError if it is not JSON. In a forked child, log records go to standard error."""
        if not self._wire.ours:
            aside(method, params)
            return
        self._wire.write(self._pack({"jsonrpc": "2.0", "method": method, "params": params}))

    def request(self, ctx: Context, method: str, params: dict[str, Any]) -> Any:
        """Ask the host and wait; raises ServiceError, and Cancelled when the call is cancelled meanwhile."""
        self._check_ours(method)
        if not ctx._open:
            raise ServiceError("the call has ended", code="not_found")
        return answer_of(self._ask(ctx, method, params))

    def _check_ours(self, method: str) -> None:
        """Raise ServiceError in a child that the plugin forked."""
        if not self._wire.ours:
            message = f"{method}: a service is asked by the process that has the call, not by one that it started"
            raise ServiceError(message, code="unavailable")

    def _ask(self, ctx: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
        id, data = self._number(method, params)
        self._waiting.add(id)
        self._wire.write(data)
        while True:
            # Of several waiting threads one reads for all; the others look now and then whether theirs has come.
            reading = self._reading.acquire(timeout=TURN_SECONDS)
            try:
                if id in self._answers:
                    self._waiting.discard(id)
                    return self._answers.pop(id)
                if ctx._cancelled:
                    self._waiting.discard(id)
                    raise Cancelled()
                if not ctx._open:  # a thread that outlived its call, and must not read for the next
                    self._waiting.discard(id)
                    raise ServiceError("the call has ended", code="not_found")
                if reading:
                    self._look()
            finally:
                if reading:
                    self._reading.release()

    def _number(self, method: str, params: dict[str, Any]) -> tuple[str, bytes]:
        """Return the id and the frame of a new request."""
        with self._asking:
            self._asked += 1
            id = f"s{self._asked}"
        return id, self._pack({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def poll(self, now: bool = False) -> None:
        """Take in what has arrived, without waiting and, unless now, not too often."""
        if not self._wire.ours:
            return
        time = monotonic()
        if (time < self._next_poll and not now) or not self._reading.acquire(False):
            return
        try:
            self._next_poll = time + POLL_SECONDS
            while self._wire.readable():
                self._look()
        finally:
            self._reading.release()

    def _look(self) -> None:
        """Read one frame in the middle of a call. The end of input is the end of everything."""
        frame = self._read()
        if frame is None:
            leave(0)
        self._note(frame)

    def _note(self, frame: dict[str, Any]) -> None:
        method = frame.get("method")
        if method is None:
            if frame.get("id") in self._waiting:
                self._answers[frame["id"]] = frame
        elif method == "$/cancel":
            self._cancel((frame.get("params") or {}).get("call"))
        else:
            self._queue.append(frame)

    def _cancel(self, call: Any) -> None:
        ctx = self._calls.get(call)
        if ctx is not None:
            ctx._cancel()
            return
        for frame in self._queue:
            if frame.get("method") in ("execute", "preview", "reconcile", "hook") and (frame.get("params") or {}).get("call") == call:
                self._queue.remove(frame)
                self._fail(frame["id"], Cancelled())
                return


def aside(method: str, params: dict[str, Any]) -> None:
    """Print what no frame may take to the host, if it is a log record."""
    if method == "log":
        print(f"{params['level']} {params['message']} {params['fields'] or ''}\n", end="", file=sys.stderr)


def dumps_result(value: Any) -> str:
    """Return value as JSON text; raises PluginError where it has none."""
    try:
        return dumps(value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise PluginError(f"not JSON: {exc}", code="INVALID_RESULT") from None


def answer_of(frame: dict[str, Any]) -> Any:
    """Return what an answer of the host holds; raises ServiceError for an error."""
    error = frame.get("error")
    if error is None:
        return frame.get("result")
    data = error.get("data") or {}
    usual = {-32601: "not_found", -32602: "invalid_input"}.get(error.get("code"), "internal")
    raise ServiceError(
        error.get("message") or "the host gave no reason",
        code=data.get("code") or usual,
        details=data.get("details"),
        retryable=bool(data.get("retryable")),
        retry_after_ms=data.get("retry_after_ms") or 0,
    )


def error_message(exc: BaseException) -> str:
    """Return what the caller reads."""
    try:
        return cut(str(exc), 2048) or type(exc).__name__
    except Exception:  # an exception that cannot even say what it is
        return type(exc).__name__


def error_data(exc: BaseException) -> dict[str, Any]:
    """Return the data of an error frame; an unexpected exception leaves its traceback on stderr."""
    data: dict[str, Any] = {"code": "plugin_error", "plugin_code": "", "details": {}}
    data.update(retryable=False, retry_after_ms=0)
    if not isinstance(exc, MortiseError):
        data["plugin_code"] = type(exc).__name__
        sys.excepthook(type(exc), exc, exc.__traceback__)
        return data
    # A ServiceError is told apart: the host's words about the plugin are not its words about the caller.
    if exc.code in SPOKEN and isinstance(exc, PluginError):
        data["code"] = exc.code
    else:
        data["plugin_code"] = cut(exc.code, 128)
    data.update(details=exc.details, retryable=exc.retryable, retry_after_ms=exc.retry_after_ms)
    return data
