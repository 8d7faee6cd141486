package schedule

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
)

// A moment is one tick to be made: a time that came, and the first of the times
// that it stands for.
type moment struct {
	since, at time.Time
	missed    bool
}

// moments returns the ticks of the times from next until now, oldest first, by the
// misfire policy. Their number is bounded, however long no engine looked.
func moments(spec Spec, row *Row, now time.Time) []moment {
	before := row.NextAt.Add(-time.Microsecond)
	last := spec.Last(row.CreatedAt, before, now)
	if last.IsZero() {
		return nil
	}
	first := spec.Next(row.CreatedAt, before)
	var runs []moment // newest first
	switch Misfire(row.Misfire) {
	case MisfireOnce:
		return []moment{{since: first, at: last}}
	case MisfireCatchUp:
		// One that is on time comes beside those that were missed.
		most := int(row.CatchUp)
		if now.Sub(last) <= Grace {
			most++
		}
		for at := last; !at.IsZero() && len(runs) < most; at = spec.Last(row.CreatedAt, before, at.Add(-time.Microsecond)) {
			runs = append(runs, moment{since: at, at: at})
		}
	default:
		if now.Sub(last) <= Grace {
			runs = append(runs, moment{since: last, at: last})
		}
	}
	var all []moment
	missed := last // the last one
	if n := len(runs); n > 0 {
		missed = spec.Last(row.CreatedAt, before, runs[n-1].at.Add(-time.Microsecond))
	}
	if !missed.IsZero() {
		all = append(all, moment{since: first, at: missed, missed: true})
	}
	for i := len(runs) - 1; i >= 0; i-- {
		all = append(all, runs[i])
	}
	return all
}

// materialise makes the ticks whose time has come, and says when the next one
// will. Another node may have done so, or the clock been put back: then there is
// nothing to do.
func materialise(tx ledger.Tx, row *Row, spec Spec, now time.Time) error {
	all := moments(spec, row, now)
	if len(all) == 0 {
		if row.NextAt.After(now) {
			return nil
		}
		row.NextAt = spec.Next(row.CreatedAt, now) // the zone's data has changed: that time is none any more
		return saved(tx, row, row.NextAt, now)
	}
	waiting, err := tx.Ticks(context.Background(), TickFilter{Tenant: row.Tenant, ScheduleID: row.ID, Outcome: TickDue, Limit: maxWaiting})
	if err != nil {
		return err
	}
	busy, err := running(tx, row)
	if err != nil {
		return err
	}
	busy = busy || len(waiting) > 0
	row.NextAt = spec.Next(row.CreatedAt, all[len(all)-1].at)
	if err := saved(tx, row, now, now); err != nil {
		return err
	}
	for _, m := range all {
		tick := TickRow{Tenant: row.Tenant, ScheduleID: row.ID, At: m.at, Since: m.since, Outcome: TickDue, UpdatedAt: now}
		switch {
		case m.missed:
			tick.Outcome = TickMissed
		case busy && Overlap(row.Overlap) == OverlapSkip, len(waiting) >= maxWaiting:
			tick.Outcome = TickOverlapped
		}
		if _, err := tx.InsertTick(tick); err != nil {
			return err
		}
	}
	return tx.DeleteTicks(row.Tenant, row.ID, now.Add(-keepTicks))
}

// running reports whether the last run is not over. A run whose outcome is unknown
// counts as over: a person has to settle it, and the schedule goes on.
func running(tx ledger.Tx, row *Row) (bool, error) {
	if row.LastCall == "" {
		return false, nil
	}
	call, err := tx.Call(context.Background(), row.Tenant, row.LastCall)
	return err == nil && call != nil && !call.State.Ended(), err
}

// saved writes a row, or ends the closure with errLost.
func saved(tx ledger.Tx, row *Row, wake, now time.Time) error {
	row.WakeAt, row.UpdatedAt = wake, now
	won, err := tx.UpdateSchedule(*row)
	if err == nil && !won {
		err = errLost
	}
	row.Revision++
	return err
}
