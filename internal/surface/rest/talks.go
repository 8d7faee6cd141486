package rest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Turn is what an agent answered to a message.
type Turn struct {
	Conversation string    `json:"conversation" doc:"Its id, for the next message."`
	Text         string    `json:"text"`
	Uses         []TurnUse `json:"uses" nullable:"false" doc:"The operations that it used."`
	Labels       []string  `json:"labels" nullable:"false" doc:"What the answer is tainted with."`
	Steps        int       `json:"steps" doc:"Moves of its model."`
	Cut          bool      `json:"cut,omitzero" doc:"It stopped at the most moves that it may make."`
}

// A TurnUse is an operation that an agent used in a turn.
type TurnUse struct {
	Operation string        `json:"operation"`
	CallID    string        `json:"call_id,omitzero"`
	Status    plugin.Status `json:"status,omitzero"`
	Code      plugin.Code   `json:"code,omitzero" doc:"Why it failed."`
	Approval  string        `json:"approval,omitzero" doc:"The approval that it waits for."`
}

// A MessageSpec is a message to an agent.
type MessageSpec struct {
	Text         string `json:"text" minLength:"1" maxLength:"65536"`
	Conversation string `json:"conversation,omitzero" maxLength:"64" doc:"One of the caller's own, which is open; their newest open one where it is left out, or a new one."`
	Fresh        bool   `json:"fresh,omitzero" doc:"Begin a new one, where no conversation is named."`
	Ask          bool   `json:"ask,omitzero" doc:"Of a stream, on the socket of the owner: wait for the approval of a call that the caller may agree to, where it is left out the turn goes on without."`
}

// A ConversationSpec says which conversation is meant.
type ConversationSpec struct {
	Conversation string `json:"conversation,omitzero" maxLength:"64" doc:"One of the caller's own, which is open; their newest open one where it is left out, or a new one."`
	Fresh        bool   `json:"fresh,omitzero" doc:"Begin a new one, where no conversation is named."`
}

// A TurnText is a part of an answer as it comes, where the answer is streamed.
type TurnText struct {
	Text string `json:"text"`
}

// A TurnTool is the use of an operation as it begins, and as it ends, where the answer is
// streamed.
type TurnTool struct {
	ID        string          `json:"id" doc:"The model's."`
	Name      string          `json:"name" doc:"What the model calls the operation."`
	Operation string          `json:"operation"`
	CallID    string          `json:"call_id,omitzero"`
	Input     json.RawMessage `json:"input,omitzero"`
	Status    plugin.Status   `json:"status,omitzero"`
	Code      plugin.Code     `json:"code,omitzero" doc:"Why it failed."`
	Approval  string          `json:"approval,omitzero" doc:"The approval that it waits for."`
	Text      string          `json:"text,omitzero" doc:"What the model is told."`
	Took      int64           `json:"ms,omitzero" doc:"Milliseconds."`
	Waits     bool            `json:"waits,omitzero" doc:"The turn waits for the approval, because the request asked for that."`
}

// ConversationTools are the operations that an agent has in a conversation.
type ConversationTools struct {
	Tools []ConversationTool `json:"tools" nullable:"false"`
}

// A ConversationTool is one of them.
type ConversationTool struct {
	Name        string `json:"name" doc:"What the model calls it."`
	Operation   string `json:"operation"`
	Description string `json:"description"`
}

// The names of the events of a turn that is streamed.
const (
	turnText     = "text"
	turnUsing    = "tool_begins"
	turnUsed     = "tool"
	turnApproval = "approval"
)

func (r *registry) talks() {
	add(r, route{
		method: "POST", path: "agents/{id}/conversations:talk", id: "talk", scope: host.ScopeRun, stays: true,
		told:  []reflect.Type{reflect.TypeFor[TurnText](), reflect.TypeFor[TurnTool](), reflect.TypeFor[Turn](), reflect.TypeFor[Problem]()},
		about: "Send a message to an agent, with the rights of the caller, and wait for its answer; streamed, it has the events text, tool_begins, tool and approval, and at last result",
	}, r.talk)
	add(r, route{method: "POST", path: "agents/{id}/conversations", id: "open-conversation", scope: host.ScopeRun, about: "Go on with a conversation of the caller, or begin one; nothing is said"}, r.openConversation)
	add(r, route{method: "POST", path: "agents/{id}/conversations/{conversation}:tools", id: "list-conversation-tools", scope: host.ScopeRun, about: "The operations that the agent has in a conversation of the caller; a turn is offered those that fit"}, r.listTools)
}

// talking returns a conversation of the caller.
func (q *request) talking(ctx context.Context, agent, given string, fresh bool) (*host.Talk, error) {
	if given != "" && !host.WholeSession(given) {
		return nil, missing("conversation", given)
	}
	talk, err := q.api.Agents().Talk(ctx, agent, given, fresh)
	if given != "" {
		return talk, unlessMissing(err, "conversation", given)
	}
	return talk, unlessMissing(err, "agent", agent)
}

func (r *registry) openConversation(ctx context.Context, q *request, in *struct {
	AgentNamed
	Body ConversationSpec
}) (*struct{ Body Conversation }, error) {
	talk, err := q.talking(ctx, in.ID, in.Body.Conversation, in.Body.Fresh)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Conversation }{conversationOf(talk.Conversation)}, nil
}

func (r *registry) listTools(ctx context.Context, q *request, in *ConversationNamed) (*struct{ Body ConversationTools }, error) {
	talk, err := q.talking(ctx, in.ID, in.Conversation, false)
	if err != nil {
		return nil, err
	}
	tools, err := talk.Tools(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body ConversationTools }{ConversationTools{[]ConversationTool{}}}
	for _, t := range tools {
		out.Body.Tools = append(out.Body.Tools, ConversationTool{t.Name, t.Operation, t.Description})
	}
	return out, nil
}

func (r *registry) talk(ctx context.Context, q *request, in *struct {
	AgentNamed
	Body MessageSpec
}) (*struct{ Body Turn }, error) {
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	talk, err := q.talking(ctx, in.ID, in.Body.Conversation, in.Body.Fresh)
	if err != nil {
		return nil, err
	}
	a, err := talk.Turn(ctx, in.Body.Text, q.audience(ctx, in.Body.Ask))
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Turn }{Turn{talk.Session, a.Text, []TurnUse{}, append([]string{}, a.Labels...), a.Steps, a.Cut}}
	for _, u := range a.Uses {
		out.Body.Uses = append(out.Body.Uses, TurnUse{u.Operation, u.CallID, u.Status, u.Code, u.Approval})
	}
	slices.Sort(out.Body.Labels)
	return out, nil
}

// audience is who hears a turn that is streamed; no one where it is not.
func (q *request) audience(ctx context.Context, asks bool) host.Audience {
	hears := q.hears(true)
	if hears == nil {
		return host.Audience{}
	}
	tell := func(name string, data any) {
		if raw, err := json2.Marshal(data, json2.Deterministic(true)); err == nil {
			hears(plugin.Event{Kind: plugin.EventKind(name), Data: json.RawMessage(raw)})
		}
	}
	return host.Audience{
		Say:   func(text string) { tell(turnText, TurnText{text}) },
		Using: func(u host.ToolUse) { tell(turnUsing, toolOf(u, false)) },
		Used:  func(u host.ToolUse) { tell(turnUsed, toolOf(u, false)) },
		Ask: func(u host.ToolUse) (*host.ToolReply, error) {
			waits := asks && q.caller.Owns && q.mayAgree(ctx, u.Approval)
			tell(turnApproval, toolOf(u, waits))
			if !waits {
				return nil, nil
			}
			res, err := q.api.Calls().Wait(ctx, u.CallID, host.Waiting{})
			if errors.As(err, new(host.Unfinished)) { // the turn ends meanwhile: the question stays open
				return nil, nil
			}
			return &host.ToolReply{Result: res, Err: err}, nil
		},
	}
}

// mayAgree reports whether the caller may agree to a call of their own.
func (q *request) mayAgree(ctx context.Context, approval string) bool {
	asked, err := q.api.Approvals().Asked(ctx, approval)
	return err == nil && asked.Theirs
}

func toolOf(u host.ToolUse, waits bool) TurnTool {
	return TurnTool{u.ID, u.Name, u.Operation, u.CallID, u.Input, u.Status, u.Code, u.Approval, u.Text, u.Took.Milliseconds(), waits}
}
