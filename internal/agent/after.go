package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// An After is what tool.after@v1 tells of a call besides how it ended. That of a
// call that outlives its turn is kept in the store until the call has ended.
type After struct {
	Session string          `json:"session"`
	Tool    string          `json:"tool"`
	Call    string          `json:"call"`
	Args    json.RawMessage `json:"args"` // after hooks
	Started time.Time       `json:"started"`
	Inbound int64           `json:"inbound,omitzero"` // the n of the message whose turn it was; 0 for one that did not come in
	Depth   int             `json:"depth,omitzero"`   // of the turns that went before for want of an end, see [Late]

	Asking string `json:"asking,omitzero"` // the lease of the turn that asks a person about it, and tells of it as long as it goes on
	Heard  bool   `json:"heard,omitzero"`  // the plugins heard of it in the turn, which the conversation may not have

	Plan  bool     `json:"plan,omitzero"`   // it is a plan, and no call; the plugins hear of its steps
	Steps []string `json:"steps,omitempty"` // of which they heard in the turn
}

// after tells that a tool has ended: once for each use, when it really has.
func (i *Instance) after(ctx context.Context, a After, u *Use, result json.RawMessage) error {
	f := fields{
		"sessionId": a.Session, "toolName": a.Tool, "toolCallId": a.Call, "args": a.Args,
		"durationMs": max(0, i.agents.Now().Sub(a.Started).Milliseconds()), "ok": u.Code == "",
	}
	if u.Code == "" && len(result) > 0 && len(result) <= maxHeard {
		f["result"] = result
	}
	if u.Code != "" {
		f["error"] = u.Text
	}
	return i.happened(ctx, event.ToolAfter, f)
}

// argsKey is where a context has the arguments of a use of a tool.
type argsKey struct{}

// withArgs returns a context in which the kernel's hooks note what they make of
// the arguments of a call; args returns those with which the call was judged.
func withArgs(ctx context.Context, input json.RawMessage) (_ context.Context, args func() json.RawMessage) {
	held := &input
	return context.WithValue(ctx, argsKey{}, held), func() json.RawMessage { return *held }
}

// heardArgs notes what hooks made of the arguments of the call of ctx. What is no
// object is not run, and nothing of it is told.
func heardArgs(ctx context.Context, p *event.Payload) {
	held, ok := ctx.Value(argsKey{}).(*json.RawMessage)
	if !ok {
		return
	}
	*held = json.RawMessage("{}")
	if args, found := p.Field("args"); found && args[0] == '{' {
		*held = json.RawMessage(args)
	}
}
