package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/plugin"
)

// finish settles how the call ended, and completes the result. It goes on when
// the caller has hung up, because what happened has happened.
func (a *attempt) finish(ctx context.Context, res plugin.Result, err error) (plugin.Result, error) {
	// A database that a context cut off says no more than that it was.
	if why := context.Cause(ctx); why != nil && errors.Is(err, context.Canceled) && a.phase != phaseCut && a.phase != phaseUnreached {
		err = why
	}
	ctx = context.WithoutCancel(ctx)
	defer a.uncount()
	if a.ended != nil {
		defer func() { a.ended(&a.record) }()
	}
	now := a.k.Now()
	if !a.mayHaveActed() {
		err = noRoom(err)
	}
	failure := plugin.AsError(err)
	if failure != nil {
		own := *failure // more will be said in its message, and others may have it too
		failure = &own
	}
	if failure != nil && failure.Code == plugin.CodeInternal {
		a.k.Log.Error("a call failed inside the host", "call_id", a.call.ID, "operation", a.record.Operation, "correlation_id", a.call.Trace.Correlation, "cause", fmt.Sprint(failure.Err))
	}
	if a.prior == nil {
		res = a.complete(res, now)
	}
	res.Labels = plugin.Labels(res.Labels, a.labels())
	a.note(res, failure)
	a.finishDry(&res, failure)
	goesOn, recordErr := a.write(ctx, res, failure, now)
	if recordErr != nil {
		return a.unrecorded(ctx, failure, recordErr)
	}
	fault.At("ack")
	if goesOn {
		res.Status, res.Data = plugin.InProgress, nil
		return res, nil
	}
	if failure != nil && a.record.Status == plugin.Unknown {
		res.Status = plugin.Unknown
		if a.starved() && failure.Code == plugin.CodePluginError { // what the plugin makes of the refusal is not how the call ended
			failure.Code, failure.PluginCode = plugin.CodeOutcomeUnknown, ""
		}
		return res, open(failure, a.call.ID)
	}
	if failure != nil {
		heard, masked := a.masked(ctx, failure)
		if masked { // these tell of an operation that there is not
			res.DryRun, res.Operation, res.Version, res.Labels = nil, "", "", nil
		}
		return res, heard
	}
	a.keep(res)
	return res, nil
}

// sees returns what the caller may see of a plugin.
func (a *attempt) sees(m *plugin.Manifest) (operations []*plugin.Operation, whole bool) {
	return a.k.Policy.Visible(m, a.call)
}

// masked returns the refusal as the caller hears it. A caller who does not see an
// operation hears what is said of one that there is not; the ledger keeps the real
// reason.
func (a *attempt) masked(ctx context.Context, failure *plugin.Error) (heard error, masked bool) {
	if a.ran() || a.lease != nil || a.row != nil || a.prior != nil {
		return failure, false
	}
	if a.target == nil {
		if a.unknown != nil {
			return a.unknown, true
		}
		return failure, false
	}
	if d := a.record.Decision; d != nil && d.Verdict != plugin.Deny {
		return failure, false
	}
	operations, whole := a.sees(a.target.Manifest)
	if whole || slices.Contains(operations, a.target.Operation) {
		return failure, false
	}
	if _, err := a.k.Registry.ResolveFor(ctx, a.call.Operation, a.sees); err != nil {
		return err, true
	}
	return plugin.Errorf(plugin.CodeNotFound, "no plugin is called %s", printable(a.call.Operation, 300)), true // they see another version
}

// complete fills in what the host knows better than the plugin.
func (a *attempt) complete(res plugin.Result, now time.Time) plugin.Result {
	res.CallID = a.call.ID
	res.Correlation = a.call.Trace.Correlation
	res.SchemaVersion = plugin.SchemaVersion
	if a.target != nil {
		res.Operation, res.Version = a.target.Name(), a.target.Manifest.Version
	}
	if res.Metrics == nil {
		res.Metrics = plugin.Metrics{}
	}
	if own, ok := res.Metrics["latency_ms"].(float64); ok { // the plugin's part of it
		res.Metrics["plugin_latency_ms"] = own
	}
	res.Metrics["latency_ms"] = float64(now.Sub(a.started).Microseconds()) / 1000
	return res
}

// note takes down how it ended.
func (a *attempt) note(res plugin.Result, failure *plugin.Error) {
	rec := &a.record
	rec.Metrics, rec.Nondeterminism, rec.Cached = res.Metrics, res.Nondeterminism, res.Cached
	rec.Status = res.Status
	if a.prior != nil {
		rec.Replays = a.prior.CallID
		rec.Metrics = plugin.Metrics{}
	}
	if failure != nil {
		rec.Status, rec.ResultHash = plugin.Failed, ""
		rec.Error = &plugin.ErrorRecord{Code: failure.Code, PluginCode: failure.PluginCode, Message: failure.Message}
	} else if rec.ResultHash == "" && len(res.Data) > 0 {
		rec.ResultHash, _ = canon.Hash(res.Data) // a cached or replayed answer, checked when it was new
	}
}

// write puts the end of the call into the ledger. goesOn reports that it has
// not ended: it will run again.
func (a *attempt) write(ctx context.Context, res plugin.Result, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	switch {
	case a.lease != nil:
		own := res // only the result of a call that is claimed is kept
		return a.settle(ctx, &own, failure, now)
	case a.phase == phaseUncertain && (a.goesOn || a.mayHaveActed()):
		return false, failure // it may be on record, and then it is run
	case a.row != nil:
		return a.refuse(ctx, failure, now)
	case a.phase == phaseParked:
		return false, nil // its claim is on record, and more there is not yet
	}
	kind := plugin.EntryCallSucceeded
	switch {
	case a.prior != nil:
		kind = plugin.EntryCallReplayed
	case failure != nil && !a.ran():
		kind = plugin.EntryCallRefused
	case failure != nil:
		kind = plugin.EntryCallFailed
	}
	outside := a.call.Dry != nil || a.open || a.usage != nil && a.usage.Used() // such a call waits for its entry
	return false, a.k.Ledger.Record(ctx, a.tenant(), kind, &a.record, now, outside)
}

// tenant is where the entry of this call belongs, also of one that named none.
func (a *attempt) tenant() string {
	if a.call.Tenant == "" {
		return "-"
	}
	return a.call.Tenant
}
