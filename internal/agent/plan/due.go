package plan

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// An Item is a plan that can go on.
type Item struct{ Tenant, ID string }

// duePage is how many plans are looked at with one query.
const duePage = 100

// Due returns plans that can go on and that no run is working on, the oldest first:
// queued plans, those that waited for a step which has ended since, and those that a
// run of this engine left as they were, because it could not write. Any number of plans
// that wait for a person does not hide the others.
func (e *Engine) Due(ctx context.Context, limit int) ([]Item, error) {
	var due []Item
	for _, f := range []Filter{
		{State: Queued, Ready: true, Limit: duePage},
		{State: Pending, Ready: true, Limit: duePage},
		{State: Running, Node: e.Store.Node(), Ready: true, Limit: duePage},
	} {
		for len(due) < limit {
			rows, err := e.Store.Plans(ctx, f)
			if err != nil {
				return nil, err
			}
			for i := range rows {
				if len(due) < limit && !e.runs(&rows[i]) && !e.paused(&rows[i]) {
					due = append(due, Item{rows[i].Tenant, rows[i].ID})
				}
				f.After = rows[i].ID
			}
			if len(rows) < f.Limit {
				break
			}
		}
	}
	return due, nil
}

// RecoverPlans releases the plans that a dead node was running, in the transaction that
// removes the node's row. The next run of such a plan finds by the idempotency keys of
// its steps how far it came.
func RecoverPlans(ctx context.Context, tx ledger.Tx, dead ledger.NodeRow, at time.Time) error {
	rows, err := tx.Plans(ctx, Filter{State: Running, Node: dead.ID})
	if err != nil {
		return err
	}
	for _, row := range rows {
		next := row
		next.State, next.Lease, next.Node, next.UpdatedAt = Queued, "", "", at
		if _, err := tx.UpdatePlan(row.Fence(), next); err != nil {
			return err
		}
	}
	return nil
}

// Resume takes up a plan again: a queued one, one that waited for what has
// ended since, and one whose unknown step was settled. It runs nothing; see Run
// and [Engine.Wait].
func (e *Engine) Resume(ctx context.Context, tenant, id string) (*View, error) {
	found, err := e.find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	e.unpause(found)
	at := e.now()
	err = e.Store.Write(ctx, func(tx ledger.Tx) error {
		row, err := tx.Plan(ctx, found.Tenant, found.ID)
		if err != nil || row == nil {
			return err
		}
		switch row.State {
		case Queued, Running, Pending:
			return nil
		case Unknown:
		default:
			return plugin.Errorf(plugin.CodeInvalidInput, "plan %s has ended (%s), and goes on no more; submit it again, under another key", row.ID, row.State)
		}
		calls, err := callsOf(ctx, tx, row)
		if err != nil {
			return err
		}
		for step, call := range calls {
			if call.State == ledger.Unknown {
				return plugin.Errorf(plugin.CodeOutcomeUnknown, "step %s of plan %s may or may not have had its effect, and is not repeated blindly; settle call %s first", step, row.ID, call.ID)
			}
		}
		next := *row
		next.State, next.Code, next.Message, next.UpdatedAt = Queued, "", "", at
		_, err = tx.UpdatePlan(row.Fence(), next)
		return err
	})
	if err != nil {
		return nil, err
	}
	if e.Wake != nil {
		e.Wake(ctx, "plan", found.Tenant, found.ID)
	}
	return e.view(ctx, found)
}

// poll is how often a plan is looked at that others go on with, at the most.
const poll = 250 * time.Millisecond

// Wait runs a plan, or waits while others do and while people think, until it
// has ended or ctx has. step hears of each step that has ended, in order; it may
// be nil. news returns when something has happened that others may have done; where
// it is nil the plan is looked at again and again.
func (e *Engine) Wait(ctx context.Context, tenant, id string, step func(StepView), news func(ctx context.Context)) (*View, error) {
	found, err := e.find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	id = found.ID
	told := map[string]bool{}
	tell := func(v *View) {
		for _, s := range v.Steps {
			if s.State.Ended() && !told[s.ID] && step != nil {
				told[s.ID] = true
				step(s)
			}
		}
	}
	for {
		v, err := e.run(ctx, tenant, id, func(string) {
			if v, err := e.Show(context.WithoutCancel(ctx), tenant, id); err == nil {
				tell(v)
			}
		})
		if err != nil {
			return nil, err
		}
		if tell(v); Ended(v.State) {
			return v, nil
		}
		if v.State == Pending && e.Lapse != nil { // the time to answer may be over, with no other process there to record it
			if _, err := e.Lapse(ctx); err != nil && ctx.Err() == nil {
				return v, err
			}
		}
		if news != nil {
			news(ctx)
		}
		select {
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-time.After(poll):
		}
	}
}
