# Generated from the catalogue of events (internal/base/event); not edited by hand.
"""The events of agents, each with its shape."""

from __future__ import annotations

EVENTS: dict[str, str] = {
    "agent.started@v1": "listener",
    "agent.stopped@v1": "listener",
    "session.opened@v1": "listener",
    "session.closed@v1": "listener",
    "session.message.received@v1": "transform",
    "prompt.assemble@v1": "transform",
    "model.before@v1": "transform",
    "model.after@v1": "listener",
    "tool.before@v1": "veto",
    "tool.after@v1": "listener",
    "channel.message.in@v1": "transform",
    "channel.message.out@v1": "transform",
    "schedule.fired@v1": "transform",
    "memory.upsert@v1": "listener",
    "plugin.error@v1": "listener",
}
