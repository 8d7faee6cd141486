package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const scheduleColumns = `tenant, id, owner_type, owner_id, scopes, operation, spec, zone, misfire, catch_up, overlap, overlay, created_at,
	input, state, next_at, wake_at, last_call, revision, updated_at, asker`

const insertSchedule = `INSERT INTO schedules (` + scheduleColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const updateSchedule = `UPDATE schedules SET input = ?, state = ?, next_at = ?, wake_at = ?, last_call = ?, revision = revision + 1, updated_at = ?,
	spec = ?, zone = ?, misfire = ?, catch_up = ?, overlap = ?, overlay = ?, asker = ?
	WHERE tenant = ? AND id = ? AND revision = ?`

const tickColumns = `tenant, schedule_id, tick_at, since, outcome, call_id, code, updated_at`

const insertTick = `INSERT INTO ticks (` + tickColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, schedule_id, tick_at) DO NOTHING`

// Schedule implements [store.Reader].
func (r *reader) Schedule(ctx context.Context, tenant, id string) (*store.ScheduleRow, error) {
	q := selectFrom(scheduleColumns, "schedules")
	q.where("tenant = ?", tenant)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanSchedule))
}

// Schedules implements [store.Reader].
func (r *reader) Schedules(ctx context.Context, f store.ScheduleFilter) ([]store.ScheduleRow, error) {
	q := selectFrom(scheduleColumns, "schedules")
	q.of(ctx, r, f.Tenant)
	if f.DueBefore.IsZero() {
		q.page(f.Before, f.Limit)
	} else {
		q.state(string(store.ScheduleActive), string(store.ScheduleActive))
		q.where("wake_at <= ?", micros(f.DueBefore))
		q.orderBy("wake_at, id")
		q.limit(f.Limit)
	}
	return all(rows(ctx, r, q, scanSchedule))
}

// Ticks implements [store.Reader].
func (r *reader) Ticks(ctx context.Context, f store.TickFilter) ([]store.TickRow, error) {
	q := selectFrom(tickColumns, "ticks")
	q.where("tenant = ?", f.Tenant)
	q.where("schedule_id = ?", f.ScheduleID)
	q.equal("outcome", string(f.Outcome))
	if f.Oldest {
		q.orderBy("tick_at")
	} else {
		q.orderBy("tick_at DESC")
	}
	q.limit(f.Limit)
	return all(rows(ctx, r, q, scanTick))
}

// InsertSchedule implements [store.Tx].
func (t *tx) InsertSchedule(r store.ScheduleRow) error {
	scopes, err := t.array(r.Scopes)
	if err != nil {
		return err
	}
	_, err = t.Exec(insertSchedule, r.Tenant, r.ID, r.OwnerType, r.OwnerID, scopes, r.Operation, r.Spec, r.Zone, r.Misfire, r.CatchUp, r.Overlap, r.Overlay,
		micros(r.CreatedAt), r.Input, string(r.State), micros(r.NextAt), micros(r.WakeAt), r.LastCall, r.Revision, micros(r.UpdatedAt), r.Asker)
	return err
}

// UpdateSchedule implements [store.Tx].
func (t *tx) UpdateSchedule(r store.ScheduleRow) (bool, error) {
	return t.Exec(updateSchedule, r.Input, string(r.State), micros(r.NextAt), micros(r.WakeAt), r.LastCall, micros(r.UpdatedAt),
		r.Spec, r.Zone, r.Misfire, r.CatchUp, r.Overlap, r.Overlay, r.Asker, r.Tenant, r.ID, r.Revision)
}

// DeleteSchedule implements [store.Tx].
func (t *tx) DeleteSchedule(tenant, id string) (found bool, err error) {
	if _, err := t.Exec(`DELETE FROM ticks WHERE tenant = ? AND schedule_id = ?`, tenant, id); err != nil {
		return false, err
	}
	return t.Exec(`DELETE FROM schedules WHERE tenant = ? AND id = ?`, tenant, id)
}

// InsertTick implements [store.Tx].
func (t *tx) InsertTick(r store.TickRow) (bool, error) {
	return t.Exec(insertTick, r.Tenant, r.ScheduleID, micros(r.At), micros(r.Since), string(r.Outcome), r.CallID, r.Code, micros(r.UpdatedAt))
}

// UpdateTick implements [store.Tx].
func (t *tx) UpdateTick(from store.TickOutcome, r store.TickRow) (bool, error) {
	return t.Exec(`UPDATE ticks SET outcome = ?, call_id = ?, code = ?, updated_at = ? WHERE tenant = ? AND schedule_id = ? AND tick_at = ? AND outcome = ?`,
		string(r.Outcome), r.CallID, r.Code, micros(r.UpdatedAt), r.Tenant, r.ScheduleID, micros(r.At), string(from))
}

// DeleteTicks implements [store.Tx].
func (t *tx) DeleteTicks(tenant, schedule string, before time.Time) error {
	_, err := t.Exec(`DELETE FROM ticks WHERE tenant = ? AND schedule_id = ? AND tick_at < ? AND outcome <> 'due'`, tenant, schedule, micros(before))
	return err
}

func scanSchedule(rows *record, r *store.ScheduleRow) error {
	var scopes, state string
	var created, next, wake, updated int64
	if err := rows.Scan(&r.Tenant, &r.ID, &r.OwnerType, &r.OwnerID, &scopes, &r.Operation, &r.Spec, &r.Zone, &r.Misfire, &r.CatchUp, &r.Overlap, &r.Overlay,
		&created, &r.Input, &state, &next, &wake, &r.LastCall, &r.Revision, &updated, &r.Asker); err != nil {
		return err
	}
	var err error
	if r.Scopes, err = fromArray(scopes); err != nil {
		return fmt.Errorf("scopes of schedule %s: %w", r.ID, err)
	}
	r.State, r.CreatedAt, r.UpdatedAt = store.ScheduleState(state), fromMicros(created), fromMicros(updated)
	r.NextAt, r.WakeAt = fromMicros(next), fromMicros(wake)
	return nil
}

func scanTick(rows *record, r *store.TickRow) error {
	var outcome string
	var at, since, updated int64
	if err := rows.Scan(&r.Tenant, &r.ScheduleID, &at, &since, &outcome, &r.CallID, &r.Code, &updated); err != nil {
		return err
	}
	r.Outcome, r.At, r.Since, r.UpdatedAt = store.TickOutcome(outcome), fromMicros(at), fromMicros(since), fromMicros(updated)
	return nil
}
