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
func (r *request) finish(ctx context.Context, res plugin.Result, err error) (plugin.Result, error) {
	// A database that a context cut off says no more than that it was.
	if why := context.Cause(ctx); why != nil && errors.Is(err, context.Canceled) && !r.cut && !r.unbegun {
		err = why
	}
	ctx = context.WithoutCancel(ctx)
	now := r.k.Now()
	if !r.mayHaveActed() {
		err = noRoom(err)
	}
	failure := plugin.AsError(err)
	if failure != nil {
		own := *failure // more will be said in its message, and others may have it too
		failure = &own
	}
	if failure != nil && failure.Code == plugin.CodeInternal {
		r.k.Log.Error("a call failed inside the host", "call_id", r.call.ID, "operation", r.record.Operation, "correlation_id", r.call.Trace.Correlation, "cause", fmt.Sprint(failure.Err))
	}
	if r.prior == nil {
		res = r.complete(res, now)
	}
	r.note(res, failure)
	r.finishDry(&res, failure)
	goesOn, recordErr := r.write(ctx, &res, failure, now)
	if recordErr != nil {
		return r.unrecorded(failure, recordErr)
	}
	fault.At("ack")
	if goesOn {
		res.Status, res.Data = plugin.InProgress, nil
		return res, nil
	}
	if failure != nil && r.record.Status == plugin.Unknown {
		res.Status = plugin.Unknown
		if r.starved() && failure.Code == plugin.CodePluginError { // what the plugin makes of the refusal is not how the call ended
			failure.Code, failure.PluginCode = plugin.CodeOutcomeUnknown, ""
		}
		return res, open(failure, r.call.ID)
	}
	if failure != nil {
		heard := r.masked(failure)
		if plugin.CodeOf(heard) != failure.Code {
			res.DryRun = nil // it tells of an operation that there is not
		}
		return res, heard
	}
	if r.target != nil && r.prior == nil && res.Status == plugin.Succeeded && !res.Cached && r.call.Dry == nil && !r.open && cacheable(r.target, r.call) && !isNondeterministic(&res) {
		r.k.cache.put(r.cacheKey(), res)
	}
	return res, nil
}

// masked returns the refusal as the caller sees it. A caller that may not see
// an operation gets not_found; the ledger keeps the real reason.
func (r *request) masked(failure *plugin.Error) error {
	if r.target == nil || r.ran || r.lease != nil || r.row != nil || r.prior != nil {
		return failure
	}
	if d := r.record.Decision; d != nil && d.Verdict != plugin.Deny {
		return failure
	}
	operations, whole := r.k.Policy.Visible(r.target.Manifest, r.call)
	if whole || slices.Contains(operations, r.target.Operation) {
		return failure
	}
	return plugin.Errorf(plugin.CodeNotFound, "no plugin is called %s", printable(r.call.Operation, 300))
}

// complete fills in what the host knows better than the plugin.
func (r *request) complete(res plugin.Result, now time.Time) plugin.Result {
	res.CallID = r.call.ID
	res.Correlation = r.call.Trace.Correlation
	res.SchemaVersion = plugin.SchemaVersion
	if r.target != nil {
		res.Operation, res.Version = r.target.Name(), r.target.Manifest.Version
	}
	if res.Metrics == nil {
		res.Metrics = plugin.Metrics{}
	}
	if own, ok := res.Metrics["latency_ms"].(float64); ok { // the plugin's part of it
		res.Metrics["plugin_latency_ms"] = own
	}
	res.Metrics["latency_ms"] = float64(now.Sub(r.started).Microseconds()) / 1000
	return res
}

// note takes down how it ended.
func (r *request) note(res plugin.Result, failure *plugin.Error) {
	rec := &r.record
	rec.Metrics, rec.Nondeterminism, rec.Cached = res.Metrics, res.Nondeterminism, res.Cached
	rec.Status = res.Status
	if r.prior != nil {
		rec.Replays = r.prior.CallID
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
func (r *request) write(ctx context.Context, res *plugin.Result, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	switch {
	case r.lease != nil:
		return r.settle(ctx, res, failure, now)
	case r.doubt && r.mayHaveActed():
		return false, failure // it may be on record, and then it is run
	case r.row != nil:
		return r.refuse(ctx, failure, now)
	case r.waits:
		return false, nil // its claim is on record, and more there is not yet
	}
	kind := plugin.EntryCallSucceeded
	switch {
	case r.prior != nil:
		kind = plugin.EntryCallReplayed
	case failure != nil && !r.ran:
		kind = plugin.EntryCallRefused
	case failure != nil:
		kind = plugin.EntryCallFailed
	}
	outside := r.call.Dry != nil || r.open || r.asked != nil && r.asked.Used() // such a call waits for its entry
	return false, r.k.Ledger.Record(ctx, r.tenant(), kind, &r.record, now, outside)
}

// tenant is where the entry of this call belongs, also of one that named none.
func (r *request) tenant() string {
	if r.call.Tenant == "" {
		return "-"
	}
	return r.call.Tenant
}
