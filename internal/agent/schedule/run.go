package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	lookAgain = 5 * time.Second // at a schedule whose next run waits for the last one
	patience  = time.Hour       // for which a run is tried again that the host itself cannot make
)

// passing reports whether a refusal is not the call's fault: it passes by itself, or
// the host stopped.
func passing(code plugin.Code) bool { return code.Passes() || code == plugin.CodeCancelled }

// Due returns the schedules that are to be looked at, the longest waiting first.
func (e *Engine) Due(ctx context.Context, limit int) ([]Row, error) {
	return e.opts.Store.Schedules(ctx, Filter{DueBefore: e.now(), Limit: limit})
}

// Advance turns the due times of a schedule into ticks, and makes a call of the first
// tick that is to be run, if the run before it is over. A concurrent Advance makes the
// same call, under the same idempotency key.
func (e *Engine) Advance(ctx context.Context, tenant, id string) error {
	for {
		row, tick, err := e.next(ctx, tenant, id)
		if err != nil || tick == nil {
			return err
		}
		if _, _, err := e.carryOut(ctx, row, *tick); err != nil {
			return err
		}
	}
}

// next brings a schedule up to the present and returns the tick that is to be
// run now; nil if there is none.
func (e *Engine) next(ctx context.Context, tenant, id string) (row *Row, tick *TickRow, err error) {
	_, err = e.change(ctx, tenant, id, func(tx ledger.Tx, r *Row) error {
		row, tick = r, nil
		now := e.now()
		if r.State != Active || r.WakeAt.After(now) {
			return nil
		}
		spec, err := specOf(r)
		if err != nil {
			return err
		}
		if err := materialise(tx, r, spec, now); err != nil {
			return err
		}
		waiting, err := tx.Ticks(ctx, TickFilter{Tenant: tenant, ScheduleID: id, Outcome: TickDue, Oldest: true, Limit: 1})
		if err != nil {
			return err
		}
		if len(waiting) == 0 {
			return saved(tx, r, r.NextAt, now)
		}
		busy, err := running(tx, r)
		switch {
		case err != nil:
			return err
		case busy:
			return saved(tx, r, earlier(r.NextAt, now.Add(lookAgain)), now)
		}
		tick = &waiting[0]
		return nil
	})
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		err = nil // it was deleted
	}
	return row, tick, err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Run makes a run of a schedule now, paused or not: the one that has been due
// for longest, or one beside its times.
func (e *Engine) Run(ctx context.Context, tenant, id string) (plugin.Result, error) {
	var row Row
	var tick TickRow
	beside := false // its times
	_, err := e.change(ctx, tenant, id, func(tx ledger.Tx, r *Row) error {
		row, tick, beside = Row{}, TickRow{}, false
		busy, err := running(tx, r)
		if err != nil {
			return err
		}
		if busy {
			return plugin.Errorf(plugin.CodeUnavailable, "feed %s is running; 'mortise feeds show %s' has its last runs", id, id)
		}
		waiting, err := tx.Ticks(ctx, TickFilter{Tenant: tenant, ScheduleID: id, Outcome: TickDue, Oldest: true, Limit: 1})
		if err != nil {
			return err
		}
		if beside = len(waiting) == 0; !beside {
			row, tick = *r, waiting[0]
			return nil
		}
		now := e.now()
		tick = TickRow{Tenant: tenant, ScheduleID: id, At: now, Since: now, Outcome: TickDue, UpdatedAt: now}
		inserted, err := tx.InsertTick(tick)
		if err == nil && !inserted {
			err = plugin.Errorf(plugin.CodeUnavailable, "feed %s is run at this very moment", id)
		}
		if err == nil { // if this host ends now, another takes the run up, and not only at the next time
			err = saved(tx, r, earlier(r.NextAt, now.Add(lookAgain)), now)
		}
		row = *r
		return err
	})
	if err != nil {
		return plugin.Result{}, err
	}
	res, refused, err := e.carryOut(ctx, &row, tick)
	if err != nil && beside {
		e.giveUp(context.WithoutCancel(ctx), &row, tick, res.CallID, plugin.AsError(err))
	}
	if err == nil && refused != nil {
		err = refused
	}
	return res, err
}

// giveUp ends the tick of a run beside the schedule's times that could not be made:
// the caller has heard so, and may ask again. If there is a call of it all
// the same, it is the run. Where neither can be found out, the tick stays, and is
// looked at soon.
func (e *Engine) giveUp(ctx context.Context, row *Row, tick TickRow, call string, why *plugin.Error) {
	_, err := e.change(ctx, row.Tenant, row.ID, func(tx ledger.Tx, r *Row) error {
		tick := tick
		made, err := e.made(ctx, tx, row, tick)
		if err != nil {
			return err
		}
		tick.UpdatedAt = e.now()
		tick.Outcome, tick.CallID, tick.Code = TickRefused, cmp.Or(call, newID()), string(why.Code)
		if made != nil {
			tick.Outcome, tick.CallID, tick.Code = TickCalled, made.ID, ""
		}
		won, err := tx.UpdateTick(TickDue, tick)
		if err != nil || !won {
			return err
		}
		if made != nil {
			r.LastCall = made.ID
		}
		return saved(tx, r, earlier(r.NextAt, tick.UpdatedAt), tick.UpdatedAt)
	})
	if err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
		e.opts.Log.Warn("a run of a feed could not be made, and is tried again", "schedule", row.ID, "at", tick.At, "cause", err.Error())
	}
}

// made returns the call of a tick, nil if there is none.
func (e *Engine) made(ctx context.Context, tx ledger.Tx, row *Row, tick TickRow) (*ledger.CallRow, error) {
	t, err := e.opts.Resolve(ctx, row.Operation)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return tx.CallByKey(ctx, row.Tenant, t.Name(), ledger.StoredKey(&plugin.Call{Origin: plugin.OriginFeed, Place: placeOf(row, tick)}))
}

// placeOf is what tells the call of a tick from all others of feeds.
func placeOf(row *Row, tick TickRow) string {
	return fmt.Sprintf("%s/%d", row.ID, tick.At.UnixMicro())
}

// carryOut makes the call of a tick and notes what became of it: refused is why
// there is no run. A tick whose call could not be made stays due, with an error.
func (e *Engine) carryOut(ctx context.Context, row *Row, tick TickRow) (res plugin.Result, refused *plugin.Error, err error) {
	call, about, err := e.callOf(ctx, row, tick)
	uncalled := err != nil
	if err == nil {
		res, err = e.opts.Call(ctx, call)
	}
	tick.Outcome, tick.CallID = TickCalled, res.CallID
	if err != nil {
		refused = plugin.AsError(err)
		if passing(refused.Code) && e.now().Sub(tick.At) < patience {
			res.CallID = call.ID // of which the refusal is on record
			return res, nil, fmt.Errorf("the run of feed %s at %s could not be made: %w", row.ID, tick.At.Format(time.RFC3339), err)
		}
		if about.gone {
			refused = &plugin.Error{Code: refused.Code, Message: fmt.Sprintf(
				"feed %s runs %s, and that is not there any more: %s; register it and 'mortise feeds resume %s', or 'mortise feeds delete %s'",
				row.ID, row.Operation, refused.Message, row.ID, row.ID)}
		}
		tick.Outcome, tick.CallID, tick.Code = TickRefused, call.ID, string(refused.Code)
		e.opts.Log.Warn("a run of a feed was refused", "schedule", row.ID, "operation", row.Operation, "at", tick.At, "code", refused.Code, "cause", refused.Message)
	}
	_, err = e.change(ctx, row.Tenant, row.ID, func(tx ledger.Tx, r *Row) error {
		if refused == nil { // a call may be in progress of which it is uncertain whether it is on record
			made, err := tx.Call(ctx, row.Tenant, tick.CallID)
			if err != nil {
				return err
			}
			if made == nil {
				return plugin.Errorf(plugin.CodeUnavailable, "the run of feed %s at %s is not on record; it is tried again", row.ID, tick.At.Format(time.RFC3339))
			}
		}
		noted := tick
		noted.UpdatedAt = e.now()
		won, err := tx.UpdateTick(TickDue, noted)
		if err != nil || !won {
			return err // another node has noted it
		}
		if uncalled && e.opts.Refused != nil {
			if err := e.opts.Refused(tx, viewOf(r), call.ID, refused); err != nil {
				return err
			}
		}
		if about.reset != "" {
			r.Input = withoutReset(r.Input, about.reset)
		}
		switch {
		case refused == nil:
			r.LastCall = tick.CallID
		case about.gone && r.State == Active:
			r.State = Paused
			if e.opts.Stopped != nil {
				if err := e.opts.Stopped(tx, viewOf(r), refused); err != nil {
					return err
				}
			}
		}
		return saved(tx, r, earlier(r.NextAt, tick.UpdatedAt), tick.UpdatedAt)
	})
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		err = nil // it was deleted meanwhile, and its run goes on
	}
	return res, refused, err
}

// aboutCall is what the schedule has to know of the call of a tick.
type aboutCall struct {
	gone  bool   // there is no such plugin, or no such operation of it
	reset string // the member by which a run that has succeeded was told to start over: no other is told
}

// callOf is the call of a tick.
func (e *Engine) callOf(ctx context.Context, row *Row, tick TickRow) (call plugin.Call, about aboutCall, err error) {
	call.ID = newID()
	overlay, err := overlayOf(row)
	if err != nil {
		return call, about, err
	}
	owner := e.opts.Rights(ctx, row.Tenant, plugin.Principal{Type: row.OwnerType, ID: row.OwnerID, Scopes: row.Scopes})
	call = plugin.Call{
		ID: call.ID, Tenant: row.Tenant, Principal: owner, Asker: cmp.Or(row.Asker, e.opts.Asker), Origin: plugin.OriginFeed, Operation: row.Operation,
		Input: json.RawMessage(row.Input), Overlay: overlay, Place: placeOf(row, tick), NoWait: true,
		Fresh: true, // an earlier answer is no run
	}
	t, err := e.opts.Resolve(ctx, row.Operation)
	if err != nil {
		about.gone = plugin.CodeOf(err) == plugin.CodeNotFound
		return call, about, nil // the kernel says so, on the record
	}
	if _, err := Choose(t.Manifest, t.Operation.Name); err != nil {
		return call, about, err
	}
	if member := t.Manifest.Contract.ResetMember; member != "" && row.LastCall != "" && asksReset(row.Input, member) {
		last, err := e.opts.Store.Call(ctx, row.Tenant, row.LastCall)
		if err != nil {
			return call, about, err
		}
		if last != nil && last.State == ledger.Succeeded {
			about.reset = member
			call.Input = json.RawMessage(withoutReset(row.Input, member))
		}
	}
	return call, about, nil
}

// overlayOf adds to what the host alone decides which schedule this is.
func overlayOf(row *Row) (json.RawMessage, error) {
	members := map[string]any{}
	if row.Overlay != "" {
		if err := json.Unmarshal([]byte(row.Overlay), &members); err != nil {
			return nil, fmt.Errorf("what the host decides for feed %s cannot be read: %w", row.ID, err)
		}
	}
	members["exec"] = map[string]any{"schedule_id": row.ID}
	return json.Marshal(members)
}

// asksReset reports whether an input tells a plugin to start over, by the member
// of its contract. It is told so until a run has succeeded.
func asksReset(input, member string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(input), &members) == nil && string(members[member]) == "true"
}

// withoutReset is the input without that.
func withoutReset(input, member string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &members) != nil {
		return input
	}
	delete(members, member)
	raw, err := json.Marshal(members)
	if err != nil {
		return input
	}
	return string(raw)
}
