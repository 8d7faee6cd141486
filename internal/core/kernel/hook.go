package kernel

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Hooks hear of what agents are about to do (plugins and hooks, tool.before@v1).
type Hooks interface {
	// Assigned reports whether an agent may use the plugin at all.
	Assigned(ctx context.Context, call *plugin.Call, name string) (bool, error)
	// Before asks everybody who wants to know before the call is judged. The
	// error is of a hook that said that its failure ends the turn.
	Before(ctx context.Context, t *plugin.Target, call *plugin.Call) (Heard, error)
}

// Heard is what the hooks said of a call.
type Heard struct {
	Input   json.RawMessage // replaces the call's own; nil if no hook changed it
	Labels  []string        // of what the hooks had at hand when they made that
	Vetoed  string          // why one of them refused the call; "" if none did
	Unguard string          // which guard could not say; "" if none failed
}

// assigned refuses to an agent what was not given to it. To the agent there is
// no such plugin.
func (a *attempt) assigned(ctx context.Context) error {
	if a.call.Agent == "" || a.k.Hooks == nil {
		return nil
	}
	given, err := a.k.Hooks.Assigned(ctx, a.call, a.target.Manifest.Name)
	if err == nil && !given {
		err = plugin.Errorf(plugin.CodeNotFound, "%s is not enabled for agent %s; mortise plugins enable %s --agent %s enables it", a.target.Manifest.Name, a.call.Agent, a.target.Manifest.Name, a.call.Agent)
	}
	return err
}

// hook lets the agent's hooks rewrite or refuse the call. What they make of it
// is what will be checked, judged, approved and kept; its key stands for what the
// caller sent. A bus skips a hook that fails: here a call with effects is refused
// then, because what was to guard it did not look (DESIGN 6).
func (a *attempt) hook(ctx context.Context) error {
	if a.call.Agent == "" || a.k.Hooks == nil {
		return nil
	}
	heard, err := a.k.Hooks.Before(ctx, a.target, a.call)
	if err != nil {
		return err
	}
	if heard.Vetoed != "" {
		return plugin.Errorf(plugin.CodeHookVetoed, "%s", heard.Vetoed)
	}
	if heard.Unguard != "" && len(a.target.Operation.Effects) > 0 {
		return plugin.Errorf(plugin.CodeHookFailed, "%s; %s has effects, and no hook guarded the call", heard.Unguard, a.target.Name())
	}
	if heard.Input == nil {
		return nil
	}
	if n := len(heard.Input); n > a.limits.input {
		return plugin.Errorf(plugin.CodeInputTooLarge, "hooks made an input of %d bytes; at most %d are accepted", n, a.limits.input)
	}
	hash, err := canon.Hash(heard.Input)
	if err != nil {
		return plugin.Errorf(plugin.CodeHookFailed, "what hooks made of the input is not one strict JSON value: %w", err)
	}
	if protocol.TooDeep(heard.Input) {
		return plugin.Errorf(plugin.CodeHookFailed, "what hooks made of the input is nested deeper than %d", protocol.MaxDepth)
	}
	if hash != a.record.InputHash {
		a.record.AskedHash, a.record.InputHash = a.record.InputHash, hash
		a.call.Approval = "" // of the plan, which had other arguments in it: the step asks for its own
		a.call.Labels = plugin.Labels(a.call.Labels, heard.Labels)
		a.record.Labels = a.call.Labels
	}
	a.call.Input = heard.Input
	return nil
}
