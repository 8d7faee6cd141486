package kernel

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/plugin"
)

// checkOut holds what came back against what the operation promises.
func (a *attempt) checkOut(ctx context.Context, res *plugin.Result) error {
	refuse := func(code plugin.Code, format string, args ...any) error {
		res.Data = nil
		return plugin.Errorf(code, "%s: "+format, append([]any{a.target.Name()}, args...)...)
	}
	if a.journal != nil && !a.journal.Whole() {
		return refuse(plugin.CodeOutcomeUnknown, "it says how it ended, and did something else than in the attempt before")
	}
	if _, most := a.target.Manifest.Bounds(); most > 0 && len(res.Data)+len(res.Members) > most {
		n := len(res.Data) + len(res.Members)
		return sized(refuse(plugin.CodeOutputTooLarge, "the result has %d bytes; its contract allows %d", n, most), n, most)
	}
	if n := len(res.Data) + len(res.Members); n > a.limits.output {
		return sized(refuse(plugin.CodeOutputTooLarge, "the result has %d bytes; at most %d are accepted", n, a.limits.output), n, a.limits.output)
	}
	if res.Status == plugin.InProgress && a.target.Operation.Reconcile && (a.lease != nil || a.call.Dry != nil) {
		res.Data = nil // what it says now is not its answer
		if a.call.Dry != nil {
			res.Status = plugin.Succeeded // nothing goes on
		}
		return nil
	}
	if res.Status != plugin.Succeeded {
		return refuse(plugin.CodeInvalidOutput, "the plugin answered %s; only an operator that can say later how it ended may, and this one cannot", res.Status)
	}
	if len(res.Data) == 0 {
		res.Data = []byte("null")
	}
	ctx = context.WithoutCancel(ctx) // its answer came, whether a caller waits for it or not
	if a.target.Operation.Kind == plugin.Agent && a.k.Agents != nil {
		if err := a.k.Agents.Judge(ctx, a.target, a.call, a.call.Input, res.Data); err != nil {
			res.Data = nil
			return err
		}
		a.record.Randomness = randomness(res.Data)
	} else if err := a.target.Output.Check(ctx, res.Data); budget.Exceeded(err) {
		return refuse(plugin.CodeOutputTooLarge, "the result %w", err)
	} else if err != nil && !a.verbatim(res) && !a.advised("output", err) {
		return refuse(plugin.CodeInvalidOutput, "output %w", err)
	}
	hash, err := canon.Hash(res.Data)
	if budget.Exceeded(err) {
		return refuse(plugin.CodeOutputTooLarge, "the result %w", err)
	}
	if err != nil {
		return refuse(plugin.CodeInvalidOutput, "output: %w", err)
	}
	a.record.ResultHash = hash
	a.disclose(res)
	fault.At("checked")
	return nil
}

// randomness returns what an agent's answer says of its own randomness: its
// model and parameters; nil where it says nothing.
func randomness(output []byte) json.RawMessage {
	var said struct {
		Randomness json.RawMessage `json:"randomness_disclosure"`
	}
	if json.Unmarshal(output, &said) != nil {
		return nil
	}
	return said.Randomness
}

// isNondeterministic reports whether the plugin said so of its answer.
func isNondeterministic(res *plugin.Result) bool {
	return res.Nondeterminism != nil && res.Nondeterminism.Is
}
