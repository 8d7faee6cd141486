package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// An After is what tool.after@v1 tells of a call besides how it ended. That of a
// call that outlives its turn is kept in the store until the call has ended.
type After struct {
	Session string          `json:"session"`
	Tool    string          `json:"tool"`
	Call    string          `json:"call"`
	Args    json.RawMessage `json:"args"` // after hooks
	Started time.Time       `json:"started"`
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

func afterKey(tenant, agent, call string) kvKey {
	return kvKey{Tenant: tenant, Owner: ":host", Scope: "agent:" + agent, Namespace: event.ToolAfter, Key: call}
}

// owe keeps what is to be told of a call that has not ended with its turn.
func (i *Instance) owe(ctx context.Context, a After) error {
	value, err := json.Marshal(a)
	if err != nil {
		return err
	}
	key := afterKey(i.key.Tenant, i.key.Agent, a.Call)
	ctx = context.WithoutCancel(ctx)
	err = i.agents.Store.Write(ctx, func(tx Tx) error {
		return tx.PutKV(kvRow{KVKey: key, Value: value, UpdatedAt: i.agents.Now()})
	})
	if err != nil {
		return err
	}
	// The call may have ended before the row was written; its end would then go
	// unnoticed.
	row, err := i.agents.Store.Call(ctx, i.key.Tenant, a.Call)
	if err == nil && row != nil {
		i.agents.Ended(ctx, row)
	}
	return err
}

// Ended tells the plugins of an agent of the end of a call that outlived its
// turn. Of all hosts that come by, one does.
func (a *Agents) Ended(ctx context.Context, row *callRow) {
	if row.Agent == "" || !row.State.Ended() || a.Outcome == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := a.endedLate(ctx, row); err != nil {
		a.Log.Warn("the plugins of an agent were not told how a call ended", "agent", row.Agent, "call_id", row.ID, "cause", err.Error())
	}
}

func (a *Agents) endedLate(ctx context.Context, row *callRow) error {
	key := afterKey(row.Tenant, row.Agent, row.ID)
	kept, err := a.Store.KV(ctx, key)
	if err != nil || kept == nil {
		return err
	}
	var owed After
	if err := json.Unmarshal(kept.Value, &owed); err != nil {
		return err
	}
	i, err := a.Instance(ctx, row.Tenant, row.Agent)
	if err != nil {
		return err
	}
	res, failed := a.Outcome(ctx, row.Tenant, row.ID)
	won := false
	if err := a.Store.Write(ctx, func(tx Tx) error { won, err = tx.DeleteKV(key); return err }); err != nil || !won {
		return err
	}
	u := &Use{Operation: owed.Tool, CallID: row.ID, Status: res.Status}
	u.told(res, failed)
	if u.Code == "" && res.Status != plugin.Succeeded {
		u.Code = plugin.CodeOutcomeUnknown
	}
	return i.after(ctx, owed, u, res.Data)
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
