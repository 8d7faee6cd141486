package event

// The events. The rules are:
//
//   - A name with its version is for ever. What would change its shape, take a
//     field away or mean it otherwise is a new version, and the old one stays.
//   - Fields are spelled as the hooks contract spells them.
//   - `go test ./internal/base/event -update` writes docs/events.md.
const (
	AgentStarted           = "agent.started@v1"
	AgentStopped           = "agent.stopped@v1"
	SessionOpened          = "session.opened@v1"
	SessionClosed          = "session.closed@v1"
	SessionMessageReceived = "session.message.received@v1"
	PromptAssemble         = "prompt.assemble@v1"
	ModelBefore            = "model.before@v1"
	ModelAfter             = "model.after@v1"
	ToolBefore             = "tool.before@v1"
	ToolAfter              = "tool.after@v1"
	ChannelMessageIn       = "channel.message.in@v1"
	ChannelMessageOut      = "channel.message.out@v1"
	ScheduleFired          = "schedule.fired@v1"
	MemoryUpsert           = "memory.upsert@v1"
	PluginError            = "plugin.error@v1"
)

// Fields that many events have.
var (
	agentID    = Field{Name: "agentId", Type: "string", Doc: "the agent whose bus this is"}
	sessionID  = Field{Name: "sessionId", Type: "string", Doc: "the session it happens in"}
	inSession  = Field{Name: "sessionId", Type: "string", Doc: "the session it happens in, where there is one", Optional: true}
	at         = Field{Name: "at", Type: "time", Doc: "when, RFC 3339"}
	toolName   = Field{Name: "toolName", Type: "string", Doc: "the tool, as the model named it"}
	toolCallID = Field{Name: "toolCallId", Type: "string", Doc: "tells this use of the tool from all others"}
	turnIndex  = Field{Name: "turnIndex", Type: "integer", Doc: "which turn of the session, from 0"}
	duration   = Field{Name: "durationMs", Type: "integer", Doc: "how long it took, in milliseconds"}
	ok         = Field{Name: "ok", Type: "boolean", Doc: "whether it succeeded"}
	failure    = Field{Name: "error", Type: "string", Doc: "why it did not; only where ok is false", Optional: true}
	channel    = Field{Name: "channel", Type: "string", Doc: "the channel, by its namespace"}
	metadata   = Field{Name: "metadata", Type: "object", Doc: "what the channel adds", Optional: true}
	stopReason = Field{Name: "reason", Type: "string", Doc: "why", Enum: []string{"user", "idle", "shutdown", "error"}}
)

// message is one message of a conversation, wherever an event carries some.
var message = []Field{
	{Name: "role", Type: "string", Doc: "who says it", Enum: []string{"system", "user", "assistant", "tool"}},
	{Name: "content", Type: "string", Doc: "its text; empty where it has tool uses or results alone"},
	{Name: "toolUses", Type: "array", Doc: "of an assistant's message: the tools that the model asks for", Optional: true, Of: "ToolUse", Members: []Field{
		{Name: "id", Type: "string", Doc: "tells this use from all others; its result has the same"},
		{Name: "name", Type: "string", Doc: "the tool, as the model is offered it"},
		{Name: "input", Type: "object", Doc: "its input; {\"$broken\": text} where the model wrote no JSON object"},
		{Name: "signature", Type: "string", Doc: "what the model wants back with the use, opaque to plugins; base64", Optional: true},
	}},
	{Name: "toolResults", Type: "array", Doc: "of a tool's message: what tools returned, one for each use", Optional: true, Of: "ToolResult", Members: []Field{
		{Name: "id", Type: "string", Doc: "of the use"},
		{Name: "name", Type: "string", Doc: "the tool, as the model is offered it"},
		{Name: "text", Type: "string", Doc: "what the model reads: the result as JSON, or the error"},
		{Name: "failed", Type: "boolean", Doc: "whether it is an error", Optional: true},
	}},
}

// direction is the field of an event that goes one way alone.
func direction(way string) Field {
	return Field{Name: "direction", Type: "string", Doc: "always " + way, Enum: []string{way}}
}

// Catalogue has every event, in the order of the documentation. It is not to be
// changed.
var Catalogue = []Event{
	{
		Name: AgentStarted, Shape: Listener,
		Fires:   "An agent has been started and is about to take its first message.",
		Fields:  []Field{agentID, at},
		Example: `{"agentId": "support", "at": "2026-03-02T09:00:00Z"}`,
	},
	{
		Name: AgentStopped, Shape: Listener,
		Fires:   "An agent has ended its last turn and takes no more messages.",
		Fields:  []Field{agentID, at, stopReason},
		Example: `{"agentId": "support", "at": "2026-03-02T18:00:00Z", "reason": "shutdown"}`,
	},
	{
		Name: SessionOpened, Shape: Listener,
		Fires: "A conversation with the agent begins.",
		Fields: []Field{agentID, sessionID, at,
			{Name: "sessionType", Type: "string", Doc: "what sort of conversation: direct, group, scheduled"},
			{Name: "sourceKind", Type: "string", Doc: "where it comes from: cli, api, channel, schedule"},
			{Name: "sourcePlatform", Type: "string", Doc: "the platform of the channel: slack, telegram", Optional: true},
			{Name: "participants", Type: "array", Doc: "who takes part, as the source names them", Optional: true},
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:01Z",
 "sessionType": "direct", "sourceKind": "channel", "sourcePlatform": "slack", "participants": ["U02"]}`,
	},
	{
		Name: SessionClosed, Shape: Listener, Webhook: true,
		Fires:   "A conversation has ended, and its last turn with it.",
		Fields:  []Field{agentID, sessionID, at, stopReason},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:30:00Z", "reason": "idle"}`,
	},
	{
		Name: SessionMessageReceived, Shape: Transform,
		Fires: "A message for the agent has come in and is about to be added to its session.",
		Fields: []Field{agentID, sessionID, at,
			{Name: "text", Type: "string", Doc: "what it says"},
			{Name: "channel", Type: "string", Doc: "the channel it came by, by its namespace", Optional: true},
			{Name: "senderUserId", Type: "string", Doc: "the principal that sent it, if the sender is linked to one", Optional: true},
			{Name: "senderRole", Type: "string", Doc: "what the sender is to the agent: owner, user, guest", Optional: true},
			{Name: "senderChannel", Type: "string", Doc: "who sent it, as the channel names them", Optional: true},
			metadata,
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:02Z",
 "text": "Where is my order?", "channel": "slack", "senderUserId": "ann", "senderRole": "user", "senderChannel": "U02"}`,
	},
	{
		Name: PromptAssemble, Shape: Transform, HotPath: true,
		Fires: "The system prompt of a turn has been put together from its sections.",
		Fields: []Field{agentID, sessionID, at,
			{Name: "sections", Type: "array", Doc: "the prompt, from top to bottom", Of: "Section", Members: []Field{
				{Name: "key", Type: "string", Doc: "what the section is"},
				{Name: "content", Type: "string", Doc: "its text"},
			}},
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:03Z",
 "sections": [{"key": "identity", "content": "You answer customers."}, {"key": "tools", "content": "orders/find"}]}`,
	},
	{
		Name: ModelBefore, Shape: Transform, HotPath: true,
		Fires: "A model is about to be asked.",
		Fields: []Field{agentID, sessionID, at, turnIndex,
			{Name: "messages", Type: "array", Doc: "what it will be sent, the oldest first", Of: "Message", Members: message},
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:04Z", "turnIndex": 0,
 "messages": [{"role": "system", "content": "You answer customers."}, {"role": "user", "content": "Where is my order?"},
 {"role": "assistant", "content": "", "toolUses": [{"id": "use_1", "name": "orders__find", "input": {"customer": "ann"}}]},
 {"role": "tool", "content": "", "toolResults": [{"id": "use_1", "name": "orders__find", "text": "{\"orders\":1}"}]}]}`,
	},
	{
		Name: ModelAfter, Shape: Listener, HotPath: true,
		Fires: "A model has answered, or failed to.",
		Fields: []Field{agentID, sessionID, at, turnIndex, duration, ok,
			{Name: "text", Type: "string", Doc: "what it said; may be empty where it only asks for tools", Optional: true}, failure,
			{
				Name: "messages", Type: "array", Optional: true, Of: "Message", Members: message,
				Doc: "what it was sent, and its answer as the last one where ok is true; absent where that is more than 2 MiB",
			},
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:05Z", "turnIndex": 0,
 "durationMs": 840, "ok": true, "text": "Let me look.", "messages": [{"role": "user", "content": "Where is my order?"},
 {"role": "assistant", "content": "Let me look."}]}`,
	},
	{
		Name: ToolBefore, Shape: Veto, HotPath: true,
		Fires: "The agent is about to use a tool: before the input is checked, before policy decides.",
		Fields: []Field{agentID, sessionID, at, toolName, toolCallID,
			{Name: "args", Type: "object", Doc: "the input; an allowing handler may rewrite it"},
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:06Z",
 "toolName": "orders/find", "toolCallId": "call_1", "args": {"customer": "ann"}}`,
	},
	{
		Name: ToolAfter, Shape: Listener, Webhook: true,
		Fires: "A tool that the agent used has ended, or was refused. A call that waits fires once it has ended.",
		Fields: []Field{agentID, sessionID, at, toolName, toolCallID,
			{Name: "args", Type: "object", Doc: "the input, after hooks"},
			{Name: "result", Type: "any", Doc: "what it returned; only where ok is true", Optional: true},
			duration, ok, failure,
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:07Z",
 "toolName": "orders/find", "toolCallId": "call_1", "args": {"customer": "ann"},
 "result": {"orders": 1}, "durationMs": 12, "ok": true}`,
	},
	{
		Name: ChannelMessageIn, Shape: Transform,
		Fires: "A channel has delivered a message, before it is known which session it belongs to.",
		Fields: []Field{agentID, inSession, at, channel, direction("in"),
			{Name: "text", Type: "string", Doc: "what it says"}, metadata,
		},
		Example: `{"agentId": "support", "at": "2026-03-02T09:00:02Z", "channel": "slack", "direction": "in",
 "text": "Where is my order?", "metadata": {"thread": "17"}}`,
	},
	{
		Name: ChannelMessageOut, Shape: Transform,
		Fires: "The agent's answer is about to leave by a channel.",
		Fields: []Field{agentID, inSession, at, channel, direction("out"),
			{Name: "text", Type: "string", Doc: "what will be sent"}, metadata,
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:08Z", "channel": "slack",
 "direction": "out", "text": "It left the warehouse this morning."}`,
	},
	{
		Name: ScheduleFired, Shape: Transform, Webhook: true,
		Fires: "A time of one of the agent's schedules has come, before its turn begins.",
		Fields: []Field{agentID, inSession, at,
			{Name: "scheduleId", Type: "string", Doc: "the schedule"},
			{Name: "type", Type: "string", Doc: "whether it comes again", Enum: []string{"cron", "once"}},
			{Name: "prompt", Type: "string", Doc: "what the agent will be asked"},
		},
		Example: `{"agentId": "support", "at": "2026-03-02T07:00:00Z", "scheduleId": "morning", "type": "cron",
 "prompt": "Sum up the night."}`,
	},
	{
		Name: MemoryUpsert, Shape: Listener, Webhook: true,
		Fires: "Something has been written to the agent's memory.",
		Fields: []Field{agentID, inSession, at,
			{Name: "key", Type: "string", Doc: "what it is kept under"},
			{Name: "content", Type: "string", Doc: "what is kept there now"},
			{Name: "metadata", Type: "object", Doc: "what the host knows of it: labels, a list, is what it is tainted with", Optional: true},
		},
		Example: `{"agentId": "support", "sessionId": "sess_2f6c19d0a4be", "at": "2026-03-02T09:00:09Z",
 "key": "customer/ann", "content": "prefers short answers", "metadata": {"labels": ["untrusted"]}}`,
	},
	{
		Name: PluginError, Shape: Listener,
		Fires: "A handler failed and was skipped; the host does not wait for this event, and failures of its handlers emit nothing.",
		Fields: []Field{
			{Name: "pluginId", Type: "string", Doc: "whose handler, <unknown> where it named no plugin"},
			{Name: "event", Type: "string", Doc: "what it was called for"},
			{Name: "message", Type: "string", Doc: "what it failed with, in its own words: of an exception the message alone"},
			{Name: "stack", Type: "string", Doc: "where in its code, empty where that is not known"},
		},
		Example: `{"pluginId": "careful", "event": "tool.before@v1", "message": "rules is not defined", "stack": "index.ts:4:10"}`,
	},
}

var byName = indexOf(Catalogue)

func indexOf(catalogue []Event) map[string]*Event {
	found := make(map[string]*Event, len(catalogue))
	for i := range catalogue {
		found[catalogue[i].Name] = &catalogue[i]
	}
	return found
}

// Find returns the event of that name, which has its version.
func Find(name string) (*Event, bool) {
	e, found := byName[name]
	return e, found
}
