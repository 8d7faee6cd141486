package sqlstore

import (
	"context"
	"fmt"
	"iter"

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

// LiveEffects implements [store.Reader]. The join begins with the live calls, however
// many effects there are of others.
func (r *reader) LiveEffects(ctx context.Context) iter.Seq2[store.EffectRow, error] {
	q := selectFrom(effectColumns, "(SELECT tenant AS t, id AS i FROM calls WHERE "+liveRows["calls"]+") AS live CROSS JOIN effects")
	q.where("tenant = live.t")
	q.where("call_id = live.i")
	return rows(ctx, r, q, scanEffect)
}

// InsertEffect implements [store.Tx].
func (t *tx) InsertEffect(f store.Fence, r store.EffectRow) (inserted, prior *store.EffectRow, won bool, err error) {
	if won, err = t.holds(f); err != nil || !won {
		return nil, nil, false, err
	}
	r.Tenant, r.CallID = f.Tenant, f.ID
	row, err := t.signedJournal(r, f.State)
	if err != nil {
		return nil, nil, false, err
	}
	added, err := t.Row([]any{&r.N}, insertEffect, r.Tenant, r.CallID, r.Tenant, r.CallID, r.Attempt, r.Method, r.Class, r.Effect,
		r.RequestHash, r.Occurrence, r.ProviderKey, string(r.State), r.ResponseHash, micros(r.At))
	if err != nil {
		return nil, nil, false, err
	}
	if added {
		return &r, nil, true, t.signJournal(row)
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
	row, err := t.signedJournal(store.EffectRow{Tenant: f.Tenant, CallID: f.ID}, f.State)
	if err != nil {
		return false, err
	}
	found, err := t.Exec(`UPDATE effects SET attempt = ?, state = ?, response_hash = ?, at = ? WHERE tenant = ? AND call_id = ? AND n = ?`,
		r.Attempt, string(r.State), r.ResponseHash, micros(r.At), f.Tenant, f.ID, r.N)
	if err == nil && !found {
		err = t.fail(fmt.Errorf("call %s has no effect %d: it must be inserted first", f.ID, r.N))
	}
	if err != nil {
		return found, err
	}
	return found, t.signJournal(row)
}

// LateEffect implements [store.Tx].
func (t *tx) LateEffect(r store.EffectRow) (bool, error) {
	state, err := t.callState(r.Tenant, r.CallID)
	if err != nil || state == "" {
		return false, err
	}
	row, err := t.signedJournal(r, state)
	if err != nil {
		return false, err
	}
	found, err := t.Exec(`UPDATE effects SET state = ?, response_hash = ?, at = ? WHERE tenant = ? AND call_id = ? AND n = ? AND attempt = ? AND state = ?`,
		string(store.EffectLate), r.ResponseHash, micros(r.At), r.Tenant, r.CallID, r.N, r.Attempt, string(store.EffectIntent))
	if err != nil || !found {
		return found, err
	}
	return found, t.signJournal(row)
}

// signedJournal returns the call of an effect that is about to be written, where its
// journal is signed because no attempt is at work; nil where it is not. The journal has
// to hold, or the next signature would be of what another wrote.
func (t *tx) signedJournal(of store.EffectRow, state store.CallState) (*store.CallRow, error) {
	if !state.Live() || state == store.CallRunning {
		return nil, nil
	}
	row, err := t.reader.Call(context.Background(), of.Tenant, of.CallID)
	if err != nil || row == nil || row.Journal == "" {
		return nil, err
	}
	effects, err := t.Effects(context.Background(), of.Tenant, of.CallID)
	if err == nil && row.Journal != store.JournalHash(effects) {
		err = &store.AuthorityError{Table: "effects"}
	}
	return row, err
}

// signJournal signs the journal of a call as it has become; row is what signedJournal
// returned.
func (t *tx) signJournal(row *store.CallRow) error {
	if row == nil {
		return nil
	}
	effects, err := t.Effects(context.Background(), row.Tenant, row.ID)
	if err != nil {
		return err
	}
	next := *row
	next.Journal = store.JournalHash(effects)
	digest := next.Digest()
	if _, err := t.Exec(`UPDATE calls SET journal = ?, digest = ? WHERE tenant = ? AND id = ?`, next.Journal, digest, row.Tenant, row.ID); err != nil {
		return err
	}
	return t.weigh("calls", row.Digest(), digest)
}

func scanEffect(rows *record, r *store.EffectRow) error {
	var state string
	var at int64
	err := rows.Scan(&r.Tenant, &r.CallID, &r.N, &r.Attempt, &r.Method, &r.Class, &r.Effect, &r.RequestHash, &r.Occurrence, &r.ProviderKey,
		&state, &r.ResponseHash, &at)
	r.State, r.At = store.EffectState(state), fromMicros(at)
	return err
}
