package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// reportedLife is how long a program has to say how a tool of its own ended; after it the
// outcome is unknown.
const reportedLife = time.Hour

// isReported reports whether another program runs what a target stands for.
func isReported(t *plugin.Target) bool { return t.Manifest.Runner.Kind == plugin.RunnerReported }

// elsewhere refuses a tool that another program runs, unless that program asks whether it
// may, and what it asks for if that is anything else.
func (a *attempt) elsewhere(t *plugin.Target) error {
	if isReported(t) == (a.call.Origin == plugin.OriginDecision) {
		return nil
	}
	return plugin.Errorf(plugin.CodeNotFound, "no plugin is called %s", printable(a.call.Operation, 300))
}

// drift has a person asked about a tool that its program describes in another way than
// before: what it is called is no longer what policy was written for.
func (a *attempt) drift(ctx context.Context, d *plugin.Decision) error {
	if a.k.Definitions == nil || !isReported(a.target) || d.Verdict == plugin.Deny {
		return nil
	}
	changed, err := a.k.Definitions.Changed(ctx, a.call.Tenant, a.target)
	if err != nil || !changed {
		return err
	}
	d.Verdict = plugin.AllowWithApproval
	d.Reasons = append([]string{"definition_changed: " + a.target.Name() + " is not described as it was; who approves this accepts the new description"}, d.Reasons...)
	return nil
}

// graded returns what holds the call to its decision, by where it runs.
func graded(t *plugin.Target, isolation string) plugin.Enforcement {
	switch {
	case isReported(t):
		return plugin.EnforcementReported
	case isolation == caged:
		return plugin.EnforcementStructural
	case isolation == "partial": // whose filter of system calls leaves no sockets
		return plugin.EnforcementNetwork
	}
	return plugin.EnforcementNone
}

// A Report is how a tool ended, as the program says that ran it.
type Report struct {
	Outcome   string // succeeded, failed, not_run or unknown
	Arguments string // the hash of those that it ran with; "" where it does not say
	Result    string // the hash of what it returned, likewise
	Summary   string // what it returned, in short
	By        plugin.Principal
}

// Report records how a tool ended. The same report again changes nothing; another one of a
// call that has ended is a conflict, and so is one of arguments that were not decided about.
func (k *Kernel) Report(ctx context.Context, tenant, id string, r Report) (*ledger.CallRow, error) {
	row, err := k.Ledger.Call(ctx, tenant, id)
	switch {
	case err != nil:
		return nil, err
	case row == nil || row.Origin != string(plugin.OriginDecision):
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no decision %.64s", id)
	case r.Arguments != "" && r.Arguments != row.InputHash:
		return nil, plugin.Errorf(plugin.CodeConflict, "decision %s is about other arguments: %s", id, row.InputHash)
	}
	said, err := json.Marshal(map[string]string{"outcome": r.Outcome, "result_hash": r.Result, "summary": r.Summary})
	if err != nil {
		return nil, err
	}
	f := ledger.Resolution{By: r.By.Member(), Reason: "reported by the program that ran it", Labels: []string{plugin.Untrusted}}
	switch r.Outcome {
	case "succeeded":
		f.State = ledger.Succeeded
		f.Result = &plugin.Result{Status: plugin.Succeeded, CallID: id, Operation: row.Operation, Version: row.Version, Data: said, SchemaVersion: plugin.SchemaVersion, Labels: plugin.Labels(row.Labels, []string{plugin.Untrusted})}
	case "failed":
		f.State, f.Err = ledger.Failed, &plugin.Error{Code: plugin.CodePluginError, Message: "the program that ran it says that it failed", Details: said}
	case "not_run":
		f.State, f.Err = ledger.Failed, &plugin.Error{Code: plugin.CodeCancelled, Message: "the program that asked says that it did not run it", Details: said}
	case "unknown":
		f.State, f.Err = ledger.Unknown, &plugin.Error{Code: plugin.CodeOutcomeUnknown, Message: "the program that ran it does not know how it ended", Details: said}
	default:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%.64q is no outcome", r.Outcome)
	}
	for range 2 { // another report may come first
		switch {
		case row.State == f.State && f.State == ledger.Unknown:
			return row, nil
		case row.State == ledger.Succeeded || row.State == ledger.Failed:
			return row, k.sameReport(ctx, row, f.State, said)
		case row.State != ledger.InProgress && row.State != ledger.Unknown:
			return nil, plugin.Errorf(plugin.CodeConflict, "decision %s does not allow it, so nothing can have run", id)
		}
		won, err := k.Ledger.Resolve(ctx, *row, f, k.Now())
		if err != nil {
			return nil, err
		}
		if row, err = k.Ledger.Call(ctx, tenant, id); err != nil || row == nil || won {
			k.notify(ctx, tenant, id)
			return row, err
		}
	}
	return nil, plugin.Errorf(plugin.CodeConflict, "decision %s was reported about at the same time", id)
}

// Reserve binds a decision that allows to one use of its tool. It reports whether this use has it: the
// first one that asks does, and so does the same use again.
func (k *Kernel) Reserve(ctx context.Context, tenant, id, use string) (bool, error) {
	for range 2 { // another use may come first, or a report
		row, err := k.Ledger.Call(ctx, tenant, id)
		if err != nil || row == nil || row.Origin != string(plugin.OriginDecision) {
			return false, err
		}
		if won, err := k.Ledger.Hold(ctx, row, use, k.Now()); err != nil || won {
			return won, err
		}
	}
	return false, nil
}

// sameReport returns nil if a call has ended with the very report that comes again.
func (k *Kernel) sameReport(ctx context.Context, row *ledger.CallRow, state ledger.State, said []byte) error {
	prior, err := k.Ledger.Prior(ctx, row)
	if err != nil {
		return err
	}
	var kept []byte
	switch {
	case prior.Result != nil:
		kept = prior.Result.Data
	case prior.Err != nil:
		kept = prior.Err.Details
	}
	one, err := canon.Hash(said)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(kept)) > 0 && row.State == state {
		if other, err := canon.Hash(kept); err == nil && one == other {
			return nil
		}
	}
	return plugin.Errorf(plugin.CodeConflict, "decision %s is settled, and in another way: a decision is used once", row.ID)
}

// lapse gives up on a report that did not come: the outcome is unknown, and a person may
// record it.
func (k *Kernel) lapse(ctx context.Context, row *ledger.CallRow) error {
	if row.State != ledger.InProgress {
		return k.never(ctx, row, nil)
	}
	won, err := k.Ledger.Resolve(ctx, *row, ledger.Resolution{
		State: ledger.Unknown, By: "mortise", Reason: "no report came in time", Labels: []string{},
		Err: &plugin.Error{Code: plugin.CodeOutcomeUnknown, Message: "the program that was to run it did not say in time how it ended"},
	}, k.Now())
	if err == nil && won {
		k.notify(ctx, row.Tenant, row.ID)
	}
	return err
}
