# Generated from the catalogue of events (internal/base/event); not edited by hand.
"""What each event carries, as types for hooks."""

from __future__ import annotations

from typing import Any, TypedDict


class Section(TypedDict):
    """One of sections: the prompt, from top to bottom."""

    key: str  # what the section is
    content: str  # its text


class _ToolUse(TypedDict):
    id: str  # tells this use from all others; its result has the same
    name: str  # the tool, as the model is offered it
    input: dict[str, Any]  # its input; {"$broken": text} where the model wrote no JSON object


class ToolUse(_ToolUse, total=False):
    """One of toolUses: of an assistant's message: the tools that the model asks for."""

    signature: str  # what the model wants back with the use, opaque to plugins; base64


class _ToolResult(TypedDict):
    id: str  # of the use
    name: str  # the tool, as the model is offered it
    text: str  # what the model reads: the result as JSON, or the error


class ToolResult(_ToolResult, total=False):
    """One of toolResults: of a tool's message: what tools returned, one for each use."""

    failed: bool  # whether it is an error


class _Message(TypedDict):
    role: str  # who says it
    content: str  # its text; empty where it has tool uses or results alone


class Message(_Message, total=False):
    """One of messages: what it will be sent, the oldest first."""

    toolUses: list[ToolUse]  # of an assistant's message: the tools that the model asks for
    toolResults: list[ToolResult]  # of a tool's message: what tools returned, one for each use


class AgentStartedV1(TypedDict):
    """agent.started@v1: An agent has been started and is about to take its first message."""

    agentId: str  # the agent whose bus this is
    at: str  # when, RFC 3339


class AgentStoppedV1(TypedDict):
    """agent.stopped@v1: An agent has ended its last turn and takes no more messages."""

    agentId: str  # the agent whose bus this is
    at: str  # when, RFC 3339
    reason: str  # why


class _SessionOpenedV1(TypedDict):
    agentId: str  # the agent whose bus this is
    sessionId: str  # the session it happens in
    at: str  # when, RFC 3339
    sessionType: str  # what sort of conversation: direct, group, scheduled
    sourceKind: str  # where it comes from: cli, api, channel, schedule


class SessionOpenedV1(_SessionOpenedV1, total=False):
    """session.opened@v1: A conversation with the agent begins."""

    sourcePlatform: str  # the platform of the channel: slack, telegram
    participants: list[Any]  # who takes part, as the source names them


class SessionClosedV1(TypedDict):
    """session.closed@v1: A conversation has ended, and its last turn with it."""

    agentId: str  # the agent whose bus this is
    sessionId: str  # the session it happens in
    at: str  # when, RFC 3339
    reason: str  # why


class _SessionMessageReceivedV1(TypedDict):
    agentId: str  # the agent whose bus this is
    sessionId: str  # the session it happens in
    at: str  # when, RFC 3339
    text: str  # what it says


class SessionMessageReceivedV1(_SessionMessageReceivedV1, total=False):
    """session.message.received@v1: A message for the agent has come in and is about to be added to its session."""

    channel: str  # the channel it came by, by its namespace
    senderUserId: str  # the principal that sent it, if the sender is linked to one
    senderRole: str  # what the sender is to the agent: owner, user, guest
    senderChannel: str  # who sent it, as the channel names them
    metadata: dict[str, Any]  # what the channel adds


class PromptAssembleV1(TypedDict):
    """prompt.assemble@v1: The system prompt of a turn has been put together from its sections."""

    agentId: str  # the agent whose bus this is
    sessionId: str  # the session it happens in
    at: str  # when, RFC 3339
    sections: list[Section]  # the prompt, from top to bottom


class ModelBeforeV1(TypedDict):
    """model.before@v1: A model is about to be asked."""

    agentId: str  # the agent whose bus this is
    sessionId: str  # the session it happens in
    at: str  # when, RFC 3339
    turnIndex: int  # which turn of the session, from 0
    messages: list[Message]  # what it will be sent, the oldest first


class _ModelAfterV1(TypedDict):
    agentId: str  # the agent whose bus this is
    sessionId: str  # the session it happens in
    at: str  # when, RFC 3339
    turnIndex: int  # which turn of the session, from 0
    durationMs: int  # how long it took, in milliseconds
    ok: bool  # whether it succeeded


class ModelAfterV1(_ModelAfterV1, total=False):
    """model.after@v1: A model has answered, or failed to."""

    text: str  # what it said; may be empty where it only asks for tools
    error: str  # why it did not; only where ok is false
    messages: list[Message]  # what it was sent, and its answer as the last one where ok is true; absent where that is more than 2 MiB


class ToolBeforeV1(TypedDict):
    """tool.before@v1: The agent is about to use a tool: before the input is checked, before policy decides."""

    agentId: str  # the agent whose bus this is
    sessionId: str  # the session it happens in
    at: str  # when, RFC 3339
    toolName: str  # the tool, as the model named it
    toolCallId: str  # tells this use of the tool from all others
    args: dict[str, Any]  # the input; an allowing handler may rewrite it


class _ToolAfterV1(TypedDict):
    agentId: str  # the agent whose bus this is
    sessionId: str  # the session it happens in
    at: str  # when, RFC 3339
    toolName: str  # the tool, as the model named it
    toolCallId: str  # tells this use of the tool from all others
    args: dict[str, Any]  # the input, after hooks
    durationMs: int  # how long it took, in milliseconds
    ok: bool  # whether it succeeded


class ToolAfterV1(_ToolAfterV1, total=False):
    """tool.after@v1: A tool that the agent used has ended, or was refused. A call that waits fires once it has ended."""

    result: Any  # what it returned; only where ok is true
    error: str  # why it did not; only where ok is false


class _ChannelMessageInV1(TypedDict):
    agentId: str  # the agent whose bus this is
    at: str  # when, RFC 3339
    channel: str  # the channel, by its namespace
    direction: str  # always in
    text: str  # what it says


class ChannelMessageInV1(_ChannelMessageInV1, total=False):
    """channel.message.in@v1: A channel has delivered a message, before it is known which session it belongs to."""

    sessionId: str  # the session it happens in, where there is one
    metadata: dict[str, Any]  # what the channel adds


class _ChannelMessageOutV1(TypedDict):
    agentId: str  # the agent whose bus this is
    at: str  # when, RFC 3339
    channel: str  # the channel, by its namespace
    direction: str  # always out
    text: str  # what will be sent


class ChannelMessageOutV1(_ChannelMessageOutV1, total=False):
    """channel.message.out@v1: The agent's answer is about to leave by a channel."""

    sessionId: str  # the session it happens in, where there is one
    metadata: dict[str, Any]  # what the channel adds


class _ScheduleFiredV1(TypedDict):
    agentId: str  # the agent whose bus this is
    at: str  # when, RFC 3339
    scheduleId: str  # the schedule
    type: str  # whether it comes again
    prompt: str  # what the agent will be asked


class ScheduleFiredV1(_ScheduleFiredV1, total=False):
    """schedule.fired@v1: A time of one of the agent's schedules has come, before its turn begins."""

    sessionId: str  # the session it happens in, where there is one


class _MemoryUpsertV1(TypedDict):
    agentId: str  # the agent whose bus this is
    at: str  # when, RFC 3339
    key: str  # what it is kept under
    content: str  # what is kept there now


class MemoryUpsertV1(_MemoryUpsertV1, total=False):
    """memory.upsert@v1: Something has been written to the agent's memory."""

    sessionId: str  # the session it happens in, where there is one
    metadata: dict[str, Any]  # what the host knows of it: labels, a list, is what it is tainted with


class PluginErrorV1(TypedDict):
    """plugin.error@v1: A handler failed and was skipped; the host does not wait for this event, and failures of its handlers emit nothing."""

    pluginId: str  # whose handler, <unknown> where it named no plugin
    event: str  # what it was called for
    message: str  # what it failed with, in its own words: of an exception the message alone
    stack: str  # where in its code, empty where that is not known
