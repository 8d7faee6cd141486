package host

import (
	"context"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/plugin"
)

// Follow hands on the entries of a call as they are written, until its end. It changes
// nothing: others run a call that is queued. over reports that the call has ended, and
// the error is then why it failed; it is nil if the call succeeded.
func (c Calls) Follow(ctx context.Context, id string, show func(*plugin.Entry)) (over bool, err error) {
	if row, err := c.Get(ctx, id, "follow"); err != nil {
		return false, err
	} else if row == nil {
		return false, MissingCall(id)
	}
	n, err := c.host.news(ctx, id)
	if err != nil {
		return false, err
	}
	defer n.close()
	shown := map[[2]int64]bool{}
	for {
		// The state first: an end that is seen has its entry written.
		now, err := c.g.Store.Call(ctx, c.g.Tenant, id)
		if err != nil {
			return false, err
		}
		var last plugin.Entry
		for e, err := range c.g.Store.Entries(ctx, EntryFilter{Tenant: c.g.Tenant, Subject: id}) {
			if err != nil {
				return false, err
			}
			if place := [2]int64{e.Chain, e.Seq}; !shown[place] {
				shown[place] = true
				show(&e)
			}
			if strings.HasPrefix(string(e.Kind), "call.") && !e.At.Before(last.At) {
				last = e
			}
		}
		if now.State.Ended() {
			return true, ending(now, &last)
		}
		if now.State == CallPending && !now.WakeAt.After(time.Now()) {
			return false, plugin.Errorf(plugin.CodeApprovalExpired, "no approver answered by %s; the next host that runs here records that", now.WakeAt.Format(time.RFC3339))
		}
		n.wait(ctx, lookAgain)
		if err := ctx.Err(); err != nil {
			return false, Unfinished{err}
		}
	}
}

// ending is why a call ended badly, as its last entry tells; nil if it did not.
func ending(row *CallRow, last *plugin.Entry) error {
	var body struct {
		Error plugin.ErrorRecord `json:"error"`
	}
	switch row.State {
	case CallSucceeded:
		return nil
	case CallUnknown:
		return plugin.Errorf(plugin.CodeOutcomeUnknown, "call %s may or may not have had its effect", row.ID)
	}
	_ = json2.Unmarshal(last.Body, &body) // what cannot be read is for verify to find
	return &plugin.Error{Code: plugin.Code(row.Code), Message: body.Error.Message}
}

// Cancel stops a call, and returns how it stands then: one that waits fails at once, one
// that runs is told.
func (c Calls) Cancel(ctx context.Context, id, reason string) (*CallRow, error) {
	row, err := c.Control(ctx, id, "cancel")
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, MissingCall(id)
	}
	was, err := c.host.parts.Kernel.Cancel(ctx, row.Tenant, row.ID, c.by.Member(), reason)
	if err != nil {
		return nil, err
	}
	if was.Ended() {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "call %s has ended (%s) and stays as it is", row.ID, was)
	}
	return c.host.parts.Ledger.Call(ctx, row.Tenant, row.ID)
}

// Settle records the outcome of a call whose result is unknown, in their name. One that was
// not done may run again, so that a token has to be for its operation.
func (c Calls) Settle(ctx context.Context, id string, s Settlement) (*CallRow, error) {
	row, err := c.Control(ctx, id, "settle")
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, MissingCall(id)
	}
	if err := c.g.covered(ctx, c.caller, ScopeRun, "settle", row.Operation, row.Operation); err != nil {
		return nil, err
	}
	s.By = c.by
	if _, err := c.host.parts.Kernel.Settle(ctx, row.Tenant, row.ID, s); err != nil {
		return nil, err
	}
	return c.host.parts.Ledger.Call(ctx, row.Tenant, row.ID)
}

// Reconcile asks the operator of a call how it ended, and returns how it stands then. What
// the operator does not know is asked again later.
func (c Calls) Reconcile(ctx context.Context, id string) (*CallRow, error) {
	row, err := c.Control(ctx, id, "settle")
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, MissingCall(id)
	}
	if err := c.g.covered(ctx, c.caller, ScopeRun, "settle", row.Operation, row.Operation); err != nil {
		return nil, err
	}
	if row.State != CallUnknown && row.State != CallInProgress {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "call %s is %s: only of one that is unknown, or in progress elsewhere, can be asked how it ended", row.ID, StatusOf(row.State))
	}
	if err := c.host.parts.Kernel.Reconcile(ctx, row.Tenant, row.ID); err != nil {
		return nil, err
	}
	return c.host.parts.Ledger.Call(ctx, row.Tenant, row.ID)
}
