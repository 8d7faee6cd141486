"""Protocol version 2 with several calls at a time.

The main thread reads and nothing else; workers, started as they are needed and
never more than the plugin's concurrency, run the calls. A worker that waits
for a service sleeps until the main thread brings the answer.
"""

from __future__ import annotations

from queue import SimpleQueue
from threading import Lock, Thread

from ._context import Context
from ._errors import Cancelled
from ._session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._hook import Hook
    from ._plugin import Operation, Plugin
    from ._wire import Wire

    Job = tuple[Any, Operation | Hook, dict[str, Any], Context]


class ThreadedSession(Session):
    """A session whose calls run on worker threads. They are daemons: the process ends without waiting for them."""

    def __init__(self, plugin: Plugin, wire: Wire) -> None:
        super().__init__(plugin, wire)
        self.fd = -1
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._workers = 0
        self._lock = Lock()  # guards the next
        self._waiters: dict[str, tuple[Context, SimpleQueue[dict[str, Any] | None]]] = {}

    def _execute(self, frame: dict[str, Any]) -> None:
        params = frame.get("params") or {}
        op = self._operation(frame, params)
        if op is None:
            return
        ctx = self._calls[params.get("call", "")] = Context(self, params)
        self._jobs.put((frame["id"], op, params, ctx))
        if self._workers < min(len(self._calls), self._plugin.concurrency):
            self._workers += 1
            Thread(target=self._work, name=f"mortise-{self._workers}", daemon=True).start()

    def _work(self) -> None:
        while True:
            id, op, params, ctx = self._jobs.get()
            self._run(id, op, params, ctx)
            del id, op, params, ctx

    def _run(self, id: Any, op: Operation | Hook, params: dict[str, Any], ctx: Context | None) -> None:
        if ctx is not None and ctx._cancelled:  # before it began
            self._calls.pop(ctx._call, None)
            self._fail(id, Cancelled())
        else:
            super()._run(id, op, params, ctx)

    def _ask(self, ctx: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
        waiter: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        id, data = self._number(method, params)
        with self._lock:
            self._waiters[id] = ctx, waiter
        try:
            if ctx._cancelled:
                raise Cancelled()
            self._wire.write(data)
            answer = waiter.get()
        finally:
            with self._lock:
                del self._waiters[id]
        if answer is None:
            raise Cancelled()
        return answer

    def poll(self, now: bool = False) -> None:
        """Do nothing: the main thread reads."""

    def _note(self, frame: dict[str, Any]) -> None:
        if frame.get("method") == "$/cancel":
            ctx = self._calls.get((frame.get("params") or {}).get("call", ""))
            if ctx is not None:
                ctx._cancel()
                with self._lock:
                    for asker, waiter in self._waiters.values():
                        if asker is ctx:
                            waiter.put(None)
        else:
            with self._lock:
                found = self._waiters.get(frame.get("id", ""))
            if found is not None:
                found[1].put(frame)
