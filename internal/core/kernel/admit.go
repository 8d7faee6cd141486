package kernel

import (
	"context"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/core/placeholder"
	"github.com/mortise-dev/mortise/plugin"
)

// admit checks a call before it runs, a new one and one that goes on. After it the call
// has all that its plugin needs, and policy has allowed it or requires an approval.
func (a *attempt) admit(ctx context.Context) error {
	// Brief: an agent is told what it may know and what it may propose.
	if err := a.brief(ctx); err != nil {
		return err
	}
	// Attach: what the input names as files are files that this call may see.
	if err := a.attach(ctx); err != nil {
		return err
	}
	// Check in: the plugin never sees input its own schema refuses.
	if err := a.checkIn(ctx); err != nil {
		return err
	}
	a.passed("validate")
	// Decide: may this principal cause these effects? Silence means no.
	err := a.decide(ctx)
	a.passed("authorize")
	return err
}

// brief completes the input of an agent.
func (a *attempt) brief(ctx context.Context) error {
	if a.target.Operation.Kind != plugin.Agent || a.k.Agents == nil {
		return nil
	}
	input, err := a.k.Agents.Brief(ctx, a.target, a.call)
	if err != nil {
		return err
	}
	a.input, a.call.Input = a.call.Input, input
	return nil
}

// checkIn holds the input against the operation's schema. One that leaves
// something to the host is held against it when that is filled in.
func (a *attempt) checkIn(ctx context.Context) error {
	gaps, err := placeholder.Gaps(a.target.Operation, a.call.Input)
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: input: %w", a.target.Name(), err)
	}
	a.open = len(gaps) > 0
	err = a.target.Input.Check(ctx, a.shown)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if budget.Exceeded(err) {
		return plugin.Errorf(plugin.CodeInputTooLarge, "%s: the input %w", a.target.Name(), err)
	}
	if err != nil && !a.open && !a.advised("input", err) {
		err = plugin.Errorf(plugin.CodeInvalidInput, "%s: input %w", a.target.Name(), err)
		if !a.schemaLast() {
			return err
		}
		a.misfit = err
	}
	if len(a.target.Operation.Effects) > 0 {
		if at, found := canon.BigNumber(a.call.Input); found {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s: input at %s: a number above 2^53 does not mean the same to every program; send it as text", a.target.Name(), at)
		}
	}
	fault.At("validate")
	return nil
}

// advised reports whether a schema that what stands here does not fit is advice
// alone, and keeps that in the log: the plugin's own code decides.
func (a *attempt) advised(what string, misfit error) bool {
	if !a.target.Operation.Advisory {
		return false
	}
	a.k.Log.Info("what a call carries does not fit the schema, which is advice", "call_id", a.call.ID, "operation", a.target.Name(), "part", what, "misfit", misfit.Error())
	return true
}
