// Generated from the catalogue of events (internal/base/event); not edited by hand.

/** The events of agents, each with what a hook of it may do. */
export const shapes = {
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
} as const;

/** What each event carries. */
export interface Payloads {
  readonly "agent.started@v1": AgentStartedV1;
  readonly "agent.stopped@v1": AgentStoppedV1;
  readonly "session.opened@v1": SessionOpenedV1;
  readonly "session.closed@v1": SessionClosedV1;
  readonly "session.message.received@v1": SessionMessageReceivedV1;
  readonly "prompt.assemble@v1": PromptAssembleV1;
  readonly "model.before@v1": ModelBeforeV1;
  readonly "model.after@v1": ModelAfterV1;
  readonly "tool.before@v1": ToolBeforeV1;
  readonly "tool.after@v1": ToolAfterV1;
  readonly "channel.message.in@v1": ChannelMessageInV1;
  readonly "channel.message.out@v1": ChannelMessageOutV1;
  readonly "schedule.fired@v1": ScheduleFiredV1;
  readonly "memory.upsert@v1": MemoryUpsertV1;
  readonly "plugin.error@v1": PluginErrorV1;
}

/** One of sections: the prompt, from top to bottom */
export interface Section {
  /** what the section is */
  readonly key: string;
  /** its text */
  readonly content: string;
  readonly [name: string]: unknown;
}

/** One of toolUses: of an assistant's message: the tools that the model asks for */
export interface ToolUse {
  /** tells this use from all others; its result has the same */
  readonly id: string;
  /** the tool, as the model is offered it */
  readonly name: string;
  /** its input; {"$broken": text} where the model wrote no JSON object */
  readonly input: { readonly [name: string]: unknown };
  /** what the model wants back with the use, opaque to plugins; base64 */
  readonly signature?: string;
  readonly [name: string]: unknown;
}

/** One of toolResults: of a tool's message: what tools returned, one for each use */
export interface ToolResult {
  /** of the use */
  readonly id: string;
  /** the tool, as the model is offered it */
  readonly name: string;
  /** what the model reads: the result as JSON, or the error */
  readonly text: string;
  /** whether it is an error */
  readonly failed?: boolean;
  readonly [name: string]: unknown;
}

/** One of messages: what it will be sent, the oldest first */
export interface Message {
  /** who says it */
  readonly role: "system" | "user" | "assistant" | "tool";
  /** its text; empty where it has tool uses or results alone */
  readonly content: string;
  /** of an assistant's message: the tools that the model asks for */
  readonly toolUses?: readonly ToolUse[];
  /** of a tool's message: what tools returned, one for each use */
  readonly toolResults?: readonly ToolResult[];
  readonly [name: string]: unknown;
}

/** agent.started@v1: An agent has been started and is about to take its first message. */
export interface AgentStartedV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** when, RFC 3339 */
  readonly at: string;
}

/** agent.stopped@v1: An agent has ended its last turn and takes no more messages. */
export interface AgentStoppedV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** why */
  readonly reason: "user" | "idle" | "shutdown" | "error";
}

/** session.opened@v1: A conversation with the agent begins. */
export interface SessionOpenedV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in */
  readonly sessionId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** what sort of conversation: direct, group, scheduled */
  readonly sessionType: string;
  /** where it comes from: cli, api, channel, schedule */
  readonly sourceKind: string;
  /** the platform of the channel: slack, telegram */
  readonly sourcePlatform?: string;
  /** who takes part, as the source names them */
  readonly participants?: readonly unknown[];
}

/** session.closed@v1: A conversation has ended, and its last turn with it. */
export interface SessionClosedV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in */
  readonly sessionId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** why */
  readonly reason: "user" | "idle" | "shutdown" | "error";
}

/** session.message.received@v1: A message for the agent has come in and is about to be added to its session. */
export interface SessionMessageReceivedV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in */
  readonly sessionId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** what it says */
  readonly text: string;
  /** the channel it came by, by its namespace */
  readonly channel?: string;
  /** the principal that sent it, if the sender is linked to one */
  readonly senderUserId?: string;
  /** what the sender is to the agent: owner, user, guest */
  readonly senderRole?: string;
  /** who sent it, as the channel names them */
  readonly senderChannel?: string;
  /** what the channel adds */
  readonly metadata?: { readonly [name: string]: unknown };
}

/** prompt.assemble@v1: The system prompt of a turn has been put together from its sections. */
export interface PromptAssembleV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in */
  readonly sessionId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** the prompt, from top to bottom */
  readonly sections: readonly Section[];
}

/** model.before@v1: A model is about to be asked. */
export interface ModelBeforeV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in */
  readonly sessionId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** which turn of the session, from 0 */
  readonly turnIndex: number;
  /** what it will be sent, the oldest first */
  readonly messages: readonly Message[];
}

/** model.after@v1: A model has answered, or failed to. */
export interface ModelAfterV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in */
  readonly sessionId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** which turn of the session, from 0 */
  readonly turnIndex: number;
  /** how long it took, in milliseconds */
  readonly durationMs: number;
  /** whether it succeeded */
  readonly ok: boolean;
  /** what it said; may be empty where it only asks for tools */
  readonly text?: string;
  /** why it did not; only where ok is false */
  readonly error?: string;
  /** what it was sent, and its answer as the last one where ok is true; absent where that is more than 2 MiB */
  readonly messages?: readonly Message[];
}

/** tool.before@v1: The agent is about to use a tool: before the input is checked, before policy decides. */
export interface ToolBeforeV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in */
  readonly sessionId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** the tool, as the model named it */
  readonly toolName: string;
  /** tells this use of the tool from all others */
  readonly toolCallId: string;
  /** the input; an allowing handler may rewrite it */
  readonly args: { readonly [name: string]: unknown };
}

/** tool.after@v1: A tool that the agent used has ended, or was refused. A call that waits fires once it has ended. */
export interface ToolAfterV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in */
  readonly sessionId: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** the tool, as the model named it */
  readonly toolName: string;
  /** tells this use of the tool from all others */
  readonly toolCallId: string;
  /** the input, after hooks */
  readonly args: { readonly [name: string]: unknown };
  /** what it returned; only where ok is true */
  readonly result?: unknown;
  /** how long it took, in milliseconds */
  readonly durationMs: number;
  /** whether it succeeded */
  readonly ok: boolean;
  /** why it did not; only where ok is false */
  readonly error?: string;
}

/** channel.message.in@v1: A channel has delivered a message, before it is known which session it belongs to. */
export interface ChannelMessageInV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in, where there is one */
  readonly sessionId?: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** the channel, by its namespace */
  readonly channel: string;
  /** always in */
  readonly direction: "in";
  /** what it says */
  readonly text: string;
  /** what the channel adds */
  readonly metadata?: { readonly [name: string]: unknown };
}

/** channel.message.out@v1: The agent's answer is about to leave by a channel. */
export interface ChannelMessageOutV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in, where there is one */
  readonly sessionId?: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** the channel, by its namespace */
  readonly channel: string;
  /** always out */
  readonly direction: "out";
  /** what will be sent */
  readonly text: string;
  /** what the channel adds */
  readonly metadata?: { readonly [name: string]: unknown };
}

/** schedule.fired@v1: A time of one of the agent's schedules has come, before its turn begins. */
export interface ScheduleFiredV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in, where there is one */
  readonly sessionId?: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** the schedule */
  readonly scheduleId: string;
  /** whether it comes again */
  readonly type: "cron" | "once";
  /** what the agent will be asked */
  readonly prompt: string;
}

/** memory.upsert@v1: Something has been written to the agent's memory. */
export interface MemoryUpsertV1 {
  /** the agent whose bus this is */
  readonly agentId: string;
  /** the session it happens in, where there is one */
  readonly sessionId?: string;
  /** when, RFC 3339 */
  readonly at: string;
  /** what it is kept under */
  readonly key: string;
  /** what is kept there now */
  readonly content: string;
  /** what the host knows of it: labels, a list, is what it is tainted with */
  readonly metadata?: { readonly [name: string]: unknown };
}

/** plugin.error@v1: A handler failed and was skipped; the host does not wait for this event, and failures of its handlers emit nothing. */
export interface PluginErrorV1 {
  /** whose handler, <unknown> where it named no plugin */
  readonly pluginId: string;
  /** what it was called for */
  readonly event: string;
  /** what it failed with, in its own words: of an exception the message alone */
  readonly message: string;
  /** where in its code, empty where that is not known */
  readonly stack: string;
}
