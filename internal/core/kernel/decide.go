package kernel

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/core/placeholder"
	"github.com/mortise-dev/mortise/plugin"
)

// decide asks policy.
func (a *attempt) decide(ctx context.Context) error {
	if a.call.EffectFree && len(a.target.Operation.Effects) > 0 {
		return plugin.Errorf(plugin.CodeEffectUndeclared, "%s has effects (%s), and was asked for by a tool or an agent, below which nothing has", a.target.Name(), strings.Join(a.target.Operation.Effects, ", "))
	}
	if err := a.see(ctx); err != nil {
		return err
	}
	d := a.k.Policy.Decide(a.target, withInput(a.call, a.seen))
	if err := a.drift(ctx, &d); err != nil {
		return err
	}
	a.record.Decision, a.call.Decision = &d, &d
	fault.At("policy")
	switch d.Verdict {
	case plugin.Allow:
		return a.equip(ctx)
	case plugin.AllowWithApproval: // a call that could not run is not put up for approval
		if err := a.equip(ctx); err != nil || a.call.Dry != nil {
			return err
		}
		return a.gate(ctx)
	default:
		return plugin.Errorf(plugin.CodePolicyDenied, "%s", d.Reasons[0])
	}
}

// see makes the input ready that policy judges: what the host fills in is in it,
// so that leaving an argument out does not hide it from a policy. What that is
// tainted with, the call is; an approval of the plan that the call is a step of
// does not cover it, since a person is never shown the value of a secret.
func (a *attempt) see(ctx context.Context) (err error) {
	if a.k.Seen == nil {
		a.seen, err = placeholder.Seen(a.target.Operation, a.call.Input, nil)
		return err
	}
	var labels []string
	if a.seen, labels, err = a.k.Seen(ctx, a.target, a.call); err != nil || len(labels) == 0 {
		return err
	}
	a.call.Labels = plugin.Labels(a.call.Labels, labels)
	a.record.Labels = a.call.Labels
	if a.call.Plan != "" {
		a.call.Filled = plugin.Labels(a.call.Filled, labels)
	}
	return nil
}

// equip refuses what its caller has not provided for, and what is held; and it
// makes the input ready that the plugin gets.
func (a *attempt) equip(ctx context.Context) error {
	if len(a.target.Operation.Effects) > 0 {
		if err := a.k.hold(ctx); err != nil {
			return err
		}
	}
	a.bound = a.shown
	if a.k.Equip != nil {
		bound, labels, err := a.k.Equip(ctx, a.target, withInput(a.call, a.shown))
		if err != nil {
			return err
		}
		for _, label := range labels {
			if !slices.Contains(a.call.Labels, label) { // it was not judged with that
				return plugin.Errorf(plugin.CodeUnavailable, "%s: a secret that its input stands for was set while the call was judged, by a call with the label %s; make the call again",
					a.target.Name(), label)
			}
		}
		a.bound = bound
	}
	if a.misfit != nil {
		return a.misfit
	}
	if !a.open {
		return nil
	}
	// What does not fit may be a secret, so it is not said how.
	if err := a.target.Input.Check(ctx, a.bound); err != nil && !a.target.Operation.Advisory {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: the input does not fit its schema once the host has filled in what it leaves open; 'mortise plugins show %s' has the schema",
			a.target.Name(), a.target.Manifest.Name)
	}
	return nil
}

// handed returns the call as the plugin gets it.
func (a *attempt) handed() *plugin.Call {
	input := a.bound
	if member := a.target.Manifest.Contract.ScheduleMember; member != "" {
		input = scheduled(member, input, a.call.Overlay)
	}
	return withInput(a.call, input)
}

// withInput returns a call with another input: the call itself where it has that already.
func withInput(call *plugin.Call, input json.RawMessage) *plugin.Call {
	if len(input) == len(call.Input) && len(input) > 0 && &input[0] == &call.Input[0] {
		return call
	}
	other := *call
	other.Input = input
	return &other
}

// hold refuses what has effects while nothing may have any.
func (k *Kernel) hold(ctx context.Context) error {
	if k.Hold == nil {
		return nil
	}
	return k.Hold(ctx)
}
