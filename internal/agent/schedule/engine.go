package schedule

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// Options are the parts of an engine. The first three are needed.
type Options struct {
	Store Store
	Most  int // schedules of one owner; any number where it is 0
	// Resolve returns the operation that a reference means.
	Resolve func(ctx context.Context, ref string) (*plugin.Target, error)
	// Call enqueues a call, which a worker runs.
	Call func(ctx context.Context, call plugin.Call) (plugin.Result, error)
	// Rights returns an owner with those of the rights in the schedule that the owner still
	// has, and the zero Principal if the owner is no longer known. If it is nil, owners
	// keep their rights.
	Rights func(ctx context.Context, tenant string, owner plugin.Principal) plugin.Principal

	// Refused records a run that was refused before a call was made of it; what
	// is refused later leaves the entry of that call. It may be nil.
	Refused func(tx ledger.Tx, s Schedule, call string, why *plugin.Error) error

	// Stopped records that a schedule was paused because what it runs is not
	// there any more. It may be nil.
	Stopped func(tx ledger.Tx, s Schedule, why *plugin.Error) error

	// Asker is who is taken to have made a schedule that does not say.
	Asker string

	Now func() time.Time // the clock of the store where it is nil
	Log *slog.Logger     // of runs that were refused; discarded where it is nil
}

// An Engine keeps schedules and makes their runs. It is safe for concurrent
// use, and any number of nodes may have one on the same store.
type Engine struct{ opts Options }

// New returns an engine made of these parts.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = o.Store.Now
	}
	if o.Rights == nil {
		o.Rights = func(_ context.Context, _ string, owner plugin.Principal) plugin.Principal { return owner }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Engine{o}
}

// now is the time as the store keeps it.
func (e *Engine) now() time.Time { return e.opts.Now().UTC().Truncate(time.Microsecond) }

// errLost says that a schedule changed between reading and writing it.
var errLost = errors.New("the schedule was changed meanwhile")

// Also is what is written together with a change of a schedule; nil is nothing.
type Also func(tx ledger.Tx, s Schedule) error

// Create makes a schedule of an operation, name or name/operation, by the rules
// of [Choose], and returns it. Its first run is at its first time, or at once.
func (e *Engine) Create(ctx context.Context, tenant string, s Schedule, also Also) (Schedule, error) {
	spec, err := s.check()
	if err != nil {
		return Schedule{}, err
	}
	now := e.now()
	next := spec.Next(now, now)
	if next.IsZero() {
		return Schedule{}, plugin.Errorf(plugin.CodeInvalidInput, "%s does not come any more", spec)
	}
	row := Row{
		Tenant: tenant, ID: newID(), OwnerType: s.Owner.Type, OwnerID: s.Owner.ID, Scopes: append([]string{}, s.Owner.Scopes...),
		Operation: s.Operation, Spec: spec.String(), Zone: spec.Zone(), Misfire: string(s.Misfire), CatchUp: int64(s.CatchUp), Overlap: string(s.Overlap),
		Overlay: string(s.Overlay), Asker: s.Asker, CreatedAt: now, Input: string(s.Input), State: Active, NextAt: next, WakeAt: next, UpdatedAt: now,
	}
	if s.AtOnce {
		row.WakeAt = now
	}
	err = e.opts.Store.Write(ctx, func(tx ledger.Tx) error {
		if e.opts.Most > 0 {
			n, err := tx.Owned(ctx, ownedFeeds, tenant, e.opts.Most, row.OwnerType, row.OwnerID)
			if err = errors.Join(err, ownedFeeds.Most(n, e.opts.Most, "limits.principal_feeds")); err != nil {
				return err
			}
		}
		if err := tx.InsertSchedule(row); err != nil {
			return err
		}
		if s.AtOnce {
			if _, err := tx.InsertTick(TickRow{Tenant: tenant, ScheduleID: row.ID, At: now, Since: now, Outcome: TickDue, UpdatedAt: now}); err != nil {
				return err
			}
		}
		return also.do(tx, &row)
	})
	made := viewOf(&row)
	made.AtOnce = s.AtOnce
	return made, err
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (a Also) do(tx ledger.Tx, row *Row) error {
	if a == nil {
		return nil
	}
	return a(tx, viewOf(row))
}

// Get returns a schedule.
func (e *Engine) Get(ctx context.Context, tenant, id string) (Schedule, error) {
	row, err := e.opts.Store.Schedule(ctx, tenant, id)
	if err != nil {
		return Schedule{}, err
	}
	if row == nil {
		return Schedule{}, missing(id)
	}
	return viewOf(row), nil
}

func missing(id string) error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no feed %s; 'mortise feeds list' shows those there are", id)
}

// List returns the schedules of a tenant, newest first.
func (e *Engine) List(ctx context.Context, tenant string) ([]Schedule, error) {
	rows, err := e.opts.Store.Schedules(ctx, Filter{Tenant: tenant})
	all := make([]Schedule, len(rows))
	for i := range rows {
		all[i] = viewOf(&rows[i])
	}
	return all, err
}

// Coming returns the next n times of a schedule, paused or not.
func (e *Engine) Coming(s Schedule, n int) ([]time.Time, error) {
	spec, err := Parse(s.Spec, s.Zone)
	if err != nil {
		return nil, err
	}
	var times []time.Time
	at := e.now()
	if s.Next != nil {
		at = s.Next.Add(-time.Microsecond)
	}
	for range n {
		if at = spec.Next(s.CreatedAt, at); at.IsZero() {
			break
		}
		times = append(times, at)
	}
	return times, nil
}

// Ticks returns the last n times of a schedule that came, newest first.
func (e *Engine) Ticks(ctx context.Context, tenant, id string, n int) ([]TickRow, error) {
	return e.opts.Store.Ticks(ctx, TickFilter{Tenant: tenant, ScheduleID: id, Limit: n})
}

// Pause lets a schedule make no more runs. One that was begun goes on.
func (e *Engine) Pause(ctx context.Context, tenant, id string, also Also) (Schedule, error) {
	return e.change(ctx, tenant, id, func(tx ledger.Tx, row *Row) error {
		row.State = Paused
		if err := saved(tx, row, row.NextAt, e.now()); err != nil {
			return err
		}
		return also.do(tx, row)
	})
}

// Resume lets a schedule go on with the times that come from now on: the times of its
// pause are dropped, and what waited for its turn is given up.
func (e *Engine) Resume(ctx context.Context, tenant, id string, also Also) (Schedule, error) {
	return e.change(ctx, tenant, id, func(tx ledger.Tx, row *Row) error {
		spec, err := specOf(row)
		if err != nil {
			return err
		}
		now := e.now()
		row.State, row.NextAt = Active, spec.Next(row.CreatedAt, now)
		if row.NextAt.IsZero() {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s does not come any more", spec)
		}
		if err := saved(tx, row, row.NextAt, now); err != nil {
			return err
		}
		waiting, err := tx.Ticks(ctx, TickFilter{Tenant: tenant, ScheduleID: id, Outcome: TickDue})
		if err != nil {
			return err
		}
		for _, tick := range waiting {
			tick.Outcome, tick.UpdatedAt = TickMissed, now
			if _, err := tx.UpdateTick(TickDue, tick); err != nil {
				return err
			}
		}
		return also.do(tx, row)
	})
}

// Change gives a schedule other times, another input or another overlay, as to does. Its next
// time is computed from now where its times are others; its id stays, and with it the cursors
// that plugins keep for it. to may be called again, where another change was faster.
func (e *Engine) Change(ctx context.Context, tenant, id string, to func(s *Schedule) error, also Also) (Schedule, error) {
	return e.change(ctx, tenant, id, func(tx ledger.Tx, row *Row) error {
		s := viewOf(row)
		if err := to(&s); err != nil {
			return err
		}
		spec, err := s.check()
		if err != nil {
			return err
		}
		now, wake := e.now(), row.WakeAt
		if spec.String() != row.Spec || spec.Zone() != row.Zone {
			if row.NextAt = spec.Next(row.CreatedAt, now); row.NextAt.IsZero() {
				return plugin.Errorf(plugin.CodeInvalidInput, "%s does not come any more", spec)
			}
			wake = row.NextAt
			due, err := tx.Ticks(ctx, TickFilter{Tenant: tenant, ScheduleID: id, Outcome: TickDue, Limit: 1})
			if err != nil {
				return err
			}
			if len(due) > 0 { // what is due stays due
				wake = now
			}
		}
		row.Spec, row.Zone, row.Misfire, row.CatchUp, row.Overlap = spec.String(), spec.Zone(), string(s.Misfire), int64(s.CatchUp), string(s.Overlap)
		row.Input, row.Overlay, row.Asker = string(s.Input), string(s.Overlay), s.Asker
		if err := saved(tx, row, wake, now); err != nil {
			return err
		}
		return also.do(tx, row)
	})
}

// Delete forgets a schedule and its times. A run that was begun goes on.
func (e *Engine) Delete(ctx context.Context, tenant, id string, also Also) (Schedule, error) {
	return e.change(ctx, tenant, id, func(tx ledger.Tx, row *Row) error {
		if _, err := tx.DeleteSchedule(tenant, id); err != nil {
			return err
		}
		return also.do(tx, row)
	})
}

// changes is how often a change is tried that others are faster at.
const changes = 10

// change reads a schedule and changes it in one transaction.
func (e *Engine) change(ctx context.Context, tenant, id string, do func(tx ledger.Tx, row *Row) error) (Schedule, error) {
	var s Schedule
	for tries := 1; ; tries++ {
		err := e.opts.Store.Write(ctx, func(tx ledger.Tx) error {
			s = Schedule{}
			row, err := tx.Schedule(ctx, tenant, id)
			if err != nil {
				return err
			}
			if row == nil {
				return missing(id)
			}
			err = do(tx, row)
			s = viewOf(row)
			return err
		})
		if !errors.Is(err, errLost) || tries == changes {
			return s, err
		}
	}
}
