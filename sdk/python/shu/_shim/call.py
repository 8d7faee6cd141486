"""One call: its line to the host, and what the plugin is told of it."""

from __future__ import annotations

from .records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortise._context import Context

    from .server import Server

INLINE_BYTES = 256 << 10  # a larger file travels beside the frame


class Call:
    """What the services of a host object ask through."""

    def __init__(self, server: Server, ctx: Context, plugin: str) -> None:
        self._server = server
        self.ctx = ctx
        self.plugin = plugin
        self.params: dict[str, Any] = {}  # of the operation
        self.user_id = str(ctx.auth.get("principal_id") or "")
        self.inline_bytes = INLINE_BYTES
        self.scratch = ctx.scratch

    async def ask(self, method: str, args: dict[str, Any]) -> Any:
        """Ask a service; raises ServiceError, and Cancelled once the caller has given up."""
        return await self._server.ask(self.ctx, method, {"call": self.ctx._call, "args": args})

    def ask_now(self, method: str, args: dict[str, Any]) -> Any:
        """Ask, and let nothing else of this process go on meanwhile."""
        return self._server.ask_now(self.ctx, method, {"call": self.ctx._call, "args": args})

    def log(self, level: str, message: str, fields: dict[str, Any]) -> None:
        self.ctx.log._log(level, message, fields)


def told(ctx: Context, **more: Any) -> Record:
    """Return the second argument of execute: who asks, and a key that is the same each time this call is tried."""
    auth = ctx.auth
    user = str(auth.get("principal_id") or "")
    agent = user if (auth.get("principal") or {}).get("type") == "agent" else None
    return Record(
        user_id=user,
        agent_key=agent,
        tenant_id=auth.get("tenant_id"),
        permissions=list(auth.get("scopes") or []),
        idempotency_key=ctx.key or ctx.context.get("call_id") or None,
        correlation_id=ctx.trace.get("correlation_id") or None,
        **more,
    )
