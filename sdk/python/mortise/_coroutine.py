"""Operations that are coroutines: each call has an event loop of its own."""

from __future__ import annotations

import asyncio

from ._errors import Cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Coroutine

    from ._context import Context


def run(coroutine: Coroutine[Any, Any, Any], ctx: Context) -> Any:
    """Run coroutine to its end; a $/cancel from the host cancels its task and raises Cancelled."""

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(coroutine)

        def cancel() -> None:
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:  # the loop has closed: the call was over
                pass

        ctx._on_cancel = cancel
        if ctx._cancelled:
            task.cancel()
        # With one call at a time there is no other reader of the host's lines.
        fd = ctx._host.fd
        if fd >= 0:
            try:
                loop.add_reader(fd, ctx._host.poll, True)
            except (OSError, NotImplementedError):  # a plain file, or a loop that cannot: cancels come late
                fd = -1
            ctx._host.poll(True)  # for what has been read already
        try:
            return await task
        finally:
            ctx._on_cancel = None
            if fd >= 0:
                loop.remove_reader(fd)

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if ctx._cancelled:
            raise Cancelled() from None
        raise
