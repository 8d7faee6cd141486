"""Protocol 2 for one Shu plugin: one call at a time, on an event loop that stays.

Everything happens on the main thread: while a call runs, its loop watches the
host's lines, and wakes the tasks that wait for an answer.
"""

from __future__ import annotations

import asyncio
import os
import sys
from _thread import get_ident

from eventmill._shim.plain import plain
from mortise import _start
from mortise._context import Context
from mortise._errors import Cancelled, PluginError, ServiceError
from mortise._plugin import Plugin
from mortise._session import Session, answer_of, error_message
from mortise._wire import Wire, dumps

from . import run
from .answer import EXECUTE_ERROR, Answer, failed
from .call import Call
from .describe import describe
from .load import NotAPlugin, package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Coroutine

    from .load import Package

IN_FLIGHT = 16  # requests to the host at a time, where it allows as many
LEFT_OVER_SECONDS = 1.0  # for tasks that a call leaves behind, to be gone


def start(argv: list[str], kit: str) -> None:
    """Serve the plugin in argv[0], of which argv[1] tells, until the host is done with this process."""
    if len(argv) != 2 or not os.path.isdir(argv[0]):
        _start.leave(2, "usage: python3 -I -S _boot.py PACKAGE ABOUT")
    wire = Wire(*_start.claim())
    try:
        plugin = package(os.path.realpath(argv[0]), argv[1])
    except (NotAPlugin, ValueError) as exc:
        _start.leave(1, f"shu: {exc}")
    settle(kit)
    Server(plugin, wire).serve(wire.read_line())
    _start.leave(0)


def settle(kit: str) -> None:
    """Take the SDK off the path: plugins import shu_plugin_sdk, and none of our own."""
    ours = (kit, os.path.dirname(kit))
    sys.path[:] = [*(path for path in sys.path if path not in ours), kit]
    sys.argv[:] = ["shu"]


class Server(Session):
    """A session that executes one plugin's operations."""

    def __init__(self, package: Package, wire: Wire) -> None:
        super().__init__(Plugin(package.about.name, version=package.about.version), wire)
        self._package = package
        self._thread = get_ident()
        self._loop = asyncio.new_event_loop()
        self._room: asyncio.Semaphore | None = None
        self._in_flight = IN_FLIGHT
        self._futures: dict[str, asyncio.Future[dict[str, Any]]] = {}  # of requests that wait for an answer

    def _initialize(self, frame: dict[str, Any]) -> None:
        limits = (frame.get("params") or {}).get("limits") or {}
        self._in_flight = max(1, min(IN_FLIGHT, limits.get("in_flight") or IN_FLIGHT))
        super()._initialize(frame)

    def _describe(self, frame: dict[str, Any]) -> None:
        try:
            if (frame.get("params") or {}).get("rehearse"):
                from .rehearse import rehearse

                self._respond(frame["id"], dumps({"findings": self._finish(rehearse(self._package), None)}))
                return
            said = self._finish(describe(self._package), None)
            self._respond(frame["id"], dumps({"plugins": [said]}))
        except BaseException as exc:
            answer = run.failure(self._package, "describe", exc, None)
            said = ": ".join(filter(None, ("describe", run.place(self._package.root, exc), error_message(exc))))
            self._fail(frame["id"], PluginError(said, code=EXECUTE_ERROR, details={"error": answer.text()}))

    def _execute(self, frame: dict[str, Any]) -> None:
        id, params = frame["id"], frame.get("params") or {}
        name = str(params.get("operation", "")).rpartition("/")[2]
        if frame["method"] == "reconcile":
            self._refuse(id, -32601, f"{name} has no reconcile")
            return
        ctx = self._calls[params.get("call", "")] = Context(self, params)
        call = Call(self, ctx, self._package.about.name)
        if frame["method"] == "preview":
            self._preview(id, name, params.get("input"), call)
            return
        answer: Answer | Cancelled
        try:
            answer = self._finish(run.execute(self._package, name, params.get("input"), call), ctx)
        except Cancelled as exc:
            answer = exc
        except BaseException as exc:  # out of a task that was never awaited
            try:
                answer = run.failure(self._package, name, exc, call)
            except Cancelled as given_up:
                answer = given_up
        self._end(ctx)
        if isinstance(answer, Cancelled):
            self._fail(id, answer)
            return
        try:
            self._respond(id, answer.text())
        except PluginError as exc:
            message = f"{name}: the result does not fit on the wire: {exc.message}"
            if exc.code == "limit_exceeded":  # a code that no error of the plugin's own has: the host makes its refusal of it
                answer = failed("output_too_large", message, exc.details, code="limit_exceeded")
            else:
                answer = failed(EXECUTE_ERROR, message, exc.details)
            self._respond(id, answer.text())

    def _preview(self, id: Any, name: str, payload: Any, call: Call) -> None:
        try:
            shown = self._finish(run.preview(self._package, name, payload, call), call.ctx)
            self._end(call.ctx)
            if shown is None:
                self._refuse(id, -32601, f"{name} has no preview")
            else:
                self._respond(id, dumps({"preview": shown}))
        except BaseException as exc:
            self._end(call.ctx)
            cancelled = call.ctx._cancelled
            self._fail(id, Cancelled() if cancelled else PluginError(f"{name}: {error_message(exc)}", code=EXECUTE_ERROR))

    # The loop.

    def _finish(self, work: Coroutine[Any, Any, Any], ctx: Context | None) -> Any:
        """Run a coroutine to its end; raises what it raises, and Cancelled when the caller has given up."""
        asyncio.set_event_loop(self._loop)
        task = self._loop.create_task(work)
        if ctx is not None:
            ctx._on_cancel = lambda: self._give_up(task)
        self._loop.add_reader(self.fd, self.poll, True)
        self._loop.call_soon(self.poll, True)  # for what has been read already
        try:
            return self._loop.run_until_complete(task)
        except asyncio.CancelledError:
            if ctx is not None and ctx._cancelled:
                raise Cancelled() from None
            raise
        finally:
            if ctx is not None:
                ctx._on_cancel = None
                ctx._open = False  # what is left behind asks for nothing more
            self._sweep()
            self._loop.remove_reader(self.fd)

    def _give_up(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        for future in list(self._futures.values()):  # of tasks and threads that the task does not wait for
            if not future.done():
                future.set_exception(Cancelled())

    def _sweep(self) -> None:
        """End the tasks that a call has left behind: the next call has nothing to do with them."""
        left = asyncio.all_tasks(self._loop)
        if not left:
            return
        for task in left:
            task.cancel()
        try:
            self._loop.run_until_complete(asyncio.wait(left, timeout=LEFT_OVER_SECONDS))
            for task in left:
                if task.done() and not task.cancelled():
                    task.exception()  # has been seen
        except BaseException as exc:
            print(f"shu: a task that a call left behind: {error_message(exc)}", file=sys.stderr)

    # Asking.

    async def ask(self, ctx: Context, method: str, params: dict[str, Any]) -> Any:
        """Ask the host while other tasks go on; from a loop in another thread too."""
        self._check_ours(method)
        if asyncio.get_running_loop() is self._loop:
            return await self._requested(ctx, method, params)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._requested(ctx, method, params), self._loop))

    def ask_now(self, ctx: Context, method: str, params: dict[str, Any]) -> Any:
        """Ask the host and wait."""
        self._check_ours(method)
        if get_ident() != self._thread:
            return asyncio.run_coroutine_threadsafe(self._requested(ctx, method, params), self._loop).result()
        try:
            return self.request(ctx, method, params)
        finally:
            self._loop.call_soon(self.poll, True)  # lines that came along wake no loop

    async def _requested(self, ctx: Context, method: str, params: dict[str, Any]) -> Any:
        if self._room is None:
            self._room = asyncio.Semaphore(self._in_flight)
        async with self._room:
            if ctx._cancelled:
                raise Cancelled()
            if not ctx._open:
                raise ServiceError("the call has ended", code="not_found")
            id, data = self._number(method, params)
            future = self._futures[id] = self._loop.create_future()
            try:
                self._wire.write(data)
                return answer_of(await future)
            finally:
                self._futures.pop(id, None)

    def _number(self, method: str, params: dict[str, Any]) -> tuple[str, bytes]:
        try:
            return super()._number(method, params)
        except PluginError as exc:
            if exc.code != "INVALID_RESULT":
                raise
        return super()._number(method, plain(params, f"{method}: "))

    def _note(self, frame: dict[str, Any]) -> None:
        future = self._futures.get(frame.get("id", "")) if frame.get("method") is None else None
        if future is None:
            super()._note(frame)
        elif not future.done():
            future.set_result(frame)
