// Code generated from the catalogue of events (internal/base/event). DO NOT EDIT.

package mortise

import "github.com/go-json-experiment/json/jsontext"

// Section is one of sections: the prompt, from top to bottom.
type Section struct {
	Key     string `json:"key"`     // what the section is
	Content string `json:"content"` // its text
}

// ToolUse is one of toolUses: of an assistant's message: the tools that the model asks for.
type ToolUse struct {
	ID        string         `json:"id"`                 // tells this use from all others; its result has the same
	Name      string         `json:"name"`               // the tool, as the model is offered it
	Input     jsontext.Value `json:"input"`              // its input; {"$broken": text} where the model wrote no JSON object
	Signature string         `json:"signature,omitzero"` // what the model wants back with the use, opaque to plugins; base64
}

// ToolResult is one of toolResults: of a tool's message: what tools returned, one for each use.
type ToolResult struct {
	ID     string `json:"id"`              // of the use
	Name   string `json:"name"`            // the tool, as the model is offered it
	Text   string `json:"text"`            // what the model reads: the result as JSON, or the error
	Failed bool   `json:"failed,omitzero"` // whether it is an error
}

// Message is one of messages: what it will be sent, the oldest first.
type Message struct {
	Role        string       `json:"role"`                 // who says it
	Content     string       `json:"content"`              // its text; empty where it has tool uses or results alone
	ToolUses    []ToolUse    `json:"toolUses,omitzero"`    // of an assistant's message: the tools that the model asks for
	ToolResults []ToolResult `json:"toolResults,omitzero"` // of a tool's message: what tools returned, one for each use
}

// AgentStartedV1 is what agent.started@v1 carries, for [Payload.Decode]. An agent has been started and is about to take its first message.
type AgentStartedV1 struct {
	AgentID string `json:"agentId"` // the agent whose bus this is
	At      string `json:"at"`      // when, RFC 3339
}

// AgentStoppedV1 is what agent.stopped@v1 carries, for [Payload.Decode]. An agent has ended its last turn and takes no more messages.
type AgentStoppedV1 struct {
	AgentID string `json:"agentId"` // the agent whose bus this is
	At      string `json:"at"`      // when, RFC 3339
	Reason  string `json:"reason"`  // why
}

// SessionOpenedV1 is what session.opened@v1 carries, for [Payload.Decode]. A conversation with the agent begins.
type SessionOpenedV1 struct {
	AgentID        string           `json:"agentId"`                 // the agent whose bus this is
	SessionID      string           `json:"sessionId"`               // the session it happens in
	At             string           `json:"at"`                      // when, RFC 3339
	SessionType    string           `json:"sessionType"`             // what sort of conversation: direct, group, scheduled
	SourceKind     string           `json:"sourceKind"`              // where it comes from: cli, api, channel, schedule
	SourcePlatform string           `json:"sourcePlatform,omitzero"` // the platform of the channel: slack, telegram
	Participants   []jsontext.Value `json:"participants,omitzero"`   // who takes part, as the source names them
}

// SessionClosedV1 is what session.closed@v1 carries, for [Payload.Decode]. A conversation has ended, and its last turn with it.
type SessionClosedV1 struct {
	AgentID   string `json:"agentId"`   // the agent whose bus this is
	SessionID string `json:"sessionId"` // the session it happens in
	At        string `json:"at"`        // when, RFC 3339
	Reason    string `json:"reason"`    // why
}

// SessionMessageReceivedV1 is what session.message.received@v1 carries, for [Payload.Decode]. A message for the agent has come in and is about to be added to its session.
type SessionMessageReceivedV1 struct {
	AgentID       string         `json:"agentId"`                // the agent whose bus this is
	SessionID     string         `json:"sessionId"`              // the session it happens in
	At            string         `json:"at"`                     // when, RFC 3339
	Text          string         `json:"text"`                   // what it says
	Channel       string         `json:"channel,omitzero"`       // the channel it came by, by its namespace
	SenderUserID  string         `json:"senderUserId,omitzero"`  // the principal that sent it, if the sender is linked to one
	SenderRole    string         `json:"senderRole,omitzero"`    // what the sender is to the agent: owner, user, guest
	SenderChannel string         `json:"senderChannel,omitzero"` // who sent it, as the channel names them
	Metadata      jsontext.Value `json:"metadata,omitzero"`      // what the channel adds
}

// PromptAssembleV1 is what prompt.assemble@v1 carries, for [Payload.Decode]. The system prompt of a turn has been put together from its sections.
type PromptAssembleV1 struct {
	AgentID   string    `json:"agentId"`   // the agent whose bus this is
	SessionID string    `json:"sessionId"` // the session it happens in
	At        string    `json:"at"`        // when, RFC 3339
	Sections  []Section `json:"sections"`  // the prompt, from top to bottom
}

// ModelBeforeV1 is what model.before@v1 carries, for [Payload.Decode]. A model is about to be asked.
type ModelBeforeV1 struct {
	AgentID   string    `json:"agentId"`   // the agent whose bus this is
	SessionID string    `json:"sessionId"` // the session it happens in
	At        string    `json:"at"`        // when, RFC 3339
	TurnIndex int64     `json:"turnIndex"` // which turn of the session, from 0
	Messages  []Message `json:"messages"`  // what it will be sent, the oldest first
}

// ModelAfterV1 is what model.after@v1 carries, for [Payload.Decode]. A model has answered, or failed to.
type ModelAfterV1 struct {
	AgentID    string    `json:"agentId"`           // the agent whose bus this is
	SessionID  string    `json:"sessionId"`         // the session it happens in
	At         string    `json:"at"`                // when, RFC 3339
	TurnIndex  int64     `json:"turnIndex"`         // which turn of the session, from 0
	DurationMS int64     `json:"durationMs"`        // how long it took, in milliseconds
	OK         bool      `json:"ok"`                // whether it succeeded
	Text       string    `json:"text,omitzero"`     // what it said; may be empty where it only asks for tools
	Error      string    `json:"error,omitzero"`    // why it did not; only where ok is false
	Messages   []Message `json:"messages,omitzero"` // what it was sent, and its answer as the last one where ok is true; absent where that is more than 2 MiB
}

// ToolBeforeV1 is what tool.before@v1 carries, for [Payload.Decode]. The agent is about to use a tool: before the input is checked, before policy decides.
type ToolBeforeV1 struct {
	AgentID    string         `json:"agentId"`    // the agent whose bus this is
	SessionID  string         `json:"sessionId"`  // the session it happens in
	At         string         `json:"at"`         // when, RFC 3339
	ToolName   string         `json:"toolName"`   // the tool, as the model named it
	ToolCallID string         `json:"toolCallId"` // tells this use of the tool from all others
	Args       jsontext.Value `json:"args"`       // the input; an allowing handler may rewrite it
}

// ToolAfterV1 is what tool.after@v1 carries, for [Payload.Decode]. A tool that the agent used has ended, or was refused. A call that waits fires once it has ended.
type ToolAfterV1 struct {
	AgentID    string         `json:"agentId"`         // the agent whose bus this is
	SessionID  string         `json:"sessionId"`       // the session it happens in
	At         string         `json:"at"`              // when, RFC 3339
	ToolName   string         `json:"toolName"`        // the tool, as the model named it
	ToolCallID string         `json:"toolCallId"`      // tells this use of the tool from all others
	Args       jsontext.Value `json:"args"`            // the input, after hooks
	Result     jsontext.Value `json:"result,omitzero"` // what it returned; only where ok is true
	DurationMS int64          `json:"durationMs"`      // how long it took, in milliseconds
	OK         bool           `json:"ok"`              // whether it succeeded
	Error      string         `json:"error,omitzero"`  // why it did not; only where ok is false
}

// ChannelMessageInV1 is what channel.message.in@v1 carries, for [Payload.Decode]. A channel has delivered a message, before it is known which session it belongs to.
type ChannelMessageInV1 struct {
	AgentID   string         `json:"agentId"`            // the agent whose bus this is
	SessionID string         `json:"sessionId,omitzero"` // the session it happens in, where there is one
	At        string         `json:"at"`                 // when, RFC 3339
	Channel   string         `json:"channel"`            // the channel, by its namespace
	Direction string         `json:"direction"`          // always in
	Text      string         `json:"text"`               // what it says
	Metadata  jsontext.Value `json:"metadata,omitzero"`  // what the channel adds
}

// ChannelMessageOutV1 is what channel.message.out@v1 carries, for [Payload.Decode]. The agent's answer is about to leave by a channel.
type ChannelMessageOutV1 struct {
	AgentID   string         `json:"agentId"`            // the agent whose bus this is
	SessionID string         `json:"sessionId,omitzero"` // the session it happens in, where there is one
	At        string         `json:"at"`                 // when, RFC 3339
	Channel   string         `json:"channel"`            // the channel, by its namespace
	Direction string         `json:"direction"`          // always out
	Text      string         `json:"text"`               // what will be sent
	Metadata  jsontext.Value `json:"metadata,omitzero"`  // what the channel adds
}

// ScheduleFiredV1 is what schedule.fired@v1 carries, for [Payload.Decode]. A time of one of the agent's schedules has come, before its turn begins.
type ScheduleFiredV1 struct {
	AgentID    string `json:"agentId"`            // the agent whose bus this is
	SessionID  string `json:"sessionId,omitzero"` // the session it happens in, where there is one
	At         string `json:"at"`                 // when, RFC 3339
	ScheduleID string `json:"scheduleId"`         // the schedule
	Type       string `json:"type"`               // whether it comes again
	Prompt     string `json:"prompt"`             // what the agent will be asked
}

// MemoryUpsertV1 is what memory.upsert@v1 carries, for [Payload.Decode]. Something has been written to the agent's memory.
type MemoryUpsertV1 struct {
	AgentID   string         `json:"agentId"`            // the agent whose bus this is
	SessionID string         `json:"sessionId,omitzero"` // the session it happens in, where there is one
	At        string         `json:"at"`                 // when, RFC 3339
	Key       string         `json:"key"`                // what it is kept under
	Content   string         `json:"content"`            // what is kept there now
	Metadata  jsontext.Value `json:"metadata,omitzero"`  // what the host knows of it: labels, a list, is what it is tainted with
}

// PluginErrorV1 is what plugin.error@v1 carries, for [Payload.Decode]. A handler failed and was skipped; the host does not wait for this event, and failures of its handlers emit nothing.
type PluginErrorV1 struct {
	PluginID string `json:"pluginId"` // whose handler, <unknown> where it named no plugin
	Event    string `json:"event"`    // what it was called for
	Message  string `json:"message"`  // what it failed with, in its own words: of an exception the message alone
	Stack    string `json:"stack"`    // where in its code, empty where that is not known
}
