package host

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A CallShown is a call with its journal of effects, its approval and its entries.
type CallShown struct {
	*CallRow
	Effects  []EffectRow
	Approval *ApprovalRow // nil where none was asked for
	Entries  []plugin.Entry
}

// Enforcement returns what held the call to its decision, as its last entry has it; "" where
// it has not run.
func (s *CallShown) Enforcement() plugin.Enforcement {
	for _, e := range slices.Backward(s.Entries) {
		var rec plugin.CallRecord
		if json.Unmarshal(e.Body, &rec) == nil && rec.Enforcement != "" {
			return rec.Enforcement
		}
	}
	return ""
}

// Show returns the call that an id means, which may be cut short, with what is kept of it.
func (c Calls) Show(ctx context.Context, given string) (s CallShown, err error) {
	if s.CallRow, err = c.Find(ctx, given, "see"); err != nil {
		return s, err
	}
	st := c.g.Store
	if s.Effects, err = st.Effects(ctx, s.Tenant, s.ID); err != nil {
		return s, err
	}
	asked, err := st.Approvals(ctx, ApprovalFilter{Tenant: s.Tenant, SubjectKind: SubjectCall, SubjectID: s.ID, Limit: 1})
	if err != nil {
		return s, err
	}
	if len(asked) > 0 {
		s.Approval = &asked[0]
	}
	s.Entries, err = ledger.Show(ctx, st, s.Tenant, s.ID)
	return s, err
}

// Input returns what a call was made with, as a person is shown it: to who may see the call.
// It is nil where that is kept no more.
func (c Calls) Input(ctx context.Context, id string) (json.RawMessage, error) {
	row, err := c.Get(ctx, id, "see")
	if err == nil && row == nil {
		err = MissingCall(id)
	}
	if err != nil {
		return nil, err
	}
	return c.approvers.inputShown(ctx, row)
}

// statesOf are the states that callers see as one.
var statesOf = map[plugin.Status][]CallState{
	plugin.PendingApproval: {CallPending},
	plugin.InProgress:      {CallQueued, CallRunning, CallInProgress},
	plugin.Succeeded:       {CallSucceeded},
	plugin.Failed:          {CallFailed},
	plugin.Unknown:         {CallUnknown},
}

// IsCallStatus reports whether a call can be in this state, as callers see it.
func IsCallStatus(s plugin.Status) bool { return statesOf[s] != nil }

// ListIn is List of the calls in a state, as callers see it.
func (c Calls) ListIn(ctx context.Context, f CallFilter, status plugin.Status) ([]CallRow, error) {
	return collect(f.Before, f.Limit, 0, func(before string, limit int) ([]CallRow, string, error) {
		f.Before, f.Limit = before, limit
		return c.PageIn(ctx, f, status)
	})
}

// PageIn is Page of the calls in a state, as callers see it.
func (c Calls) PageIn(ctx context.Context, f CallFilter, status plugin.Status) (rows []CallRow, rest string, err error) {
	for _, f.State = range statesOf[status] {
		some, after, err := c.Page(ctx, f)
		if err != nil {
			return nil, "", err
		}
		rows, rest = append(rows, some...), max(rest, after)
	}
	slices.SortFunc(rows, func(a, b CallRow) int { return strings.Compare(b.ID, a.ID) })
	if rest != "" { // older calls of one state may come between those of another
		rows = slices.DeleteFunc(rows, func(row CallRow) bool { return row.ID < rest })
	}
	return rows[:min(len(rows), f.Limit)], rest, nil
}
