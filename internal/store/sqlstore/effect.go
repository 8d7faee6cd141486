package sqlstore

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/store"
)

const effectColumns = `tenant, call_id, n, attempt, method, class, effect, request_hash, occurrence, provider_key, state, response_hash, at`

// No other transaction adds to a journal meanwhile: the call is held.
const insertEffect = `INSERT INTO effects (` + effectColumns + `)
	VALUES (?, ?, (SELECT coalesce(max(n), 0) + 1 FROM effects WHERE tenant = ? AND call_id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, call_id, request_hash, occurrence) DO NOTHING RETURNING n`

// Effects implements [store.Reader].
func (r *reader) Effects(ctx context.Context, tenant, call string) ([]store.EffectRow, error) {
	q := selectFrom(effectColumns, "effects")
	q.where("tenant = ?", tenant)
	q.where("call_id = ?", call)
	q.orderBy("n")
	return all(rows(ctx, r, q, scanEffect))
}

// InsertEffect implements [store.Tx].
func (t *tx) InsertEffect(f store.Fence, r store.EffectRow) (inserted, prior *store.EffectRow, won bool, err error) {
	if won, err = t.holds(f); err != nil || !won {
		return nil, nil, false, err
	}
	r.Tenant, r.CallID = f.Tenant, f.ID
	added, err := t.Row([]any{&r.N}, insertEffect, r.Tenant, r.CallID, r.Tenant, r.CallID, r.Attempt, r.Method, r.Class, r.Effect,
		r.RequestHash, r.Occurrence, r.ProviderKey, string(r.State), r.ResponseHash, micros(r.At))
	if err != nil {
		return nil, nil, false, err
	}
	if added {
		return &r, nil, true, nil
	}
	prior, err = t.effect(r)
	return nil, prior, err == nil, err
}

// effect returns the effect that is equal to r.
func (t *tx) effect(r store.EffectRow) (*store.EffectRow, error) {
	q := selectFrom(effectColumns, "effects")
	q.where("tenant = ?", r.Tenant)
	q.where("call_id = ?", r.CallID)
	q.where("request_hash = ?", r.RequestHash)
	q.where("occurrence = ?", r.Occurrence)
	prior, err := one(rows(context.Background(), &t.reader, q, scanEffect))
	if err == nil && prior == nil {
		err = t.fail(fmt.Errorf("an effect of call %s was seen, and is none of its effects", r.CallID))
	}
	return prior, err
}

// UpdateEffect implements [store.Tx].
func (t *tx) UpdateEffect(f store.Fence, r store.EffectRow) (bool, error) {
	if won, err := t.holds(f); err != nil || !won {
		return false, err
	}
	found, err := t.Exec(`UPDATE effects SET attempt = ?, state = ?, response_hash = ?, at = ? WHERE tenant = ? AND call_id = ? AND n = ?`,
		r.Attempt, string(r.State), r.ResponseHash, micros(r.At), f.Tenant, f.ID, r.N)
	if err == nil && !found {
		err = t.fail(fmt.Errorf("call %s has no effect %d: it must be inserted first", f.ID, r.N))
	}
	return found, err
}

// LateEffect implements [store.Tx].
func (t *tx) LateEffect(r store.EffectRow) (bool, error) {
	state, err := t.callState(r.Tenant, r.CallID)
	if err != nil || state == "" {
		return false, err
	}
	return t.Exec(`UPDATE effects SET state = ?, response_hash = ?, at = ? WHERE tenant = ? AND call_id = ? AND n = ? AND attempt = ? AND state = ?`,
		string(store.EffectLate), r.ResponseHash, micros(r.At), r.Tenant, r.CallID, r.N, r.Attempt, string(store.EffectIntent))
}

func scanEffect(rows *record, r *store.EffectRow) error {
	var state string
	var at int64
	err := rows.Scan(&r.Tenant, &r.CallID, &r.N, &r.Attempt, &r.Method, &r.Class, &r.Effect, &r.RequestHash, &r.Occurrence, &r.ProviderKey,
		&state, &r.ResponseHash, &at)
	r.State, r.At = store.EffectState(state), fromMicros(at)
	return err
}
