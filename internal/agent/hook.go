package agent

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/plugin"
)

var _ kernel.Hooks = (*Agents)(nil)

// Builtin is the plugin that every agent has: its own memory.
const Builtin = "agent.memory"

// Assigned implements [kernel.Hooks].
func (a *Agents) Assigned(ctx context.Context, call *plugin.Call, name string) (bool, error) {
	if name == Builtin {
		return true, nil
	}
	assigned, err := a.Assignments(ctx, call.Tenant, call.Agent)
	_, found := assigned[name]
	return found, err
}

// Before implements [kernel.Hooks]: it fires tool.before@v1.
func (a *Agents) Before(ctx context.Context, t *plugin.Target, call *plugin.Call) (kernel.Heard, error) {
	i, err := a.Instance(ctx, call.Tenant, call.Agent)
	if err != nil {
		return kernel.Heard{}, err
	}
	heard := kernel.Heard{Unguard: i.unguarded()}
	ctx, read := Tainting(ctx) // what hooks read of the agent's memory may be in the arguments that they make
	p, err := i.payload(event.ToolBefore, fields{
		"sessionId": call.Session, "toolName": t.Name(), "toolCallId": call.ID, "args": call.Input,
	})
	if p == nil || err != nil {
		return heard, err
	}
	v, err := i.bus.Veto(ctx, event.ToolBefore, p)
	if v.Payload != nil {
		heardArgs(ctx, v.Payload)
	}
	if err != nil {
		return heard, failed(ctx, err)
	}
	if !v.Allow {
		heard.Vetoed = t.Name() + " was refused by " + v.By
		if v.Reason != "" {
			heard.Vetoed += ": " + v.Reason
		}
		return heard, nil
	}
	for _, f := range v.Failed {
		if f.Guards {
			heard.Unguard = strings.TrimPrefix(heard.Unguard+"; the hook of "+f.Plugin+" failed: "+f.Err.Error(), "; ")
		}
	}
	if v.Payload != nil {
		args, found := v.Payload.Field("args")
		if !found || args[0] != '{' {
			return heard, plugin.Errorf(plugin.CodeHookFailed, "after its hooks the call of %s has no object in args", t.Name())
		}
		heard.Input, heard.Labels = json.RawMessage(args), read()
	}
	return heard, nil
}
