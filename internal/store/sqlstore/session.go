package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const sessionColumns = `tenant, id, name, kind, created_at, pillar, state, labels, artifacts, updated_at, owner, mac`

const insertSession = `INSERT INTO sessions (` + sessionColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const setSessionMAC = `UPDATE sessions SET mac = ? WHERE tenant = ? AND id = ?`

// Session implements [store.Reader].
func (r *reader) Session(ctx context.Context, tenant, id string) (*store.SessionRow, error) {
	q := selectFrom(sessionColumns, "sessions")
	q.where("tenant = ?", tenant)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanSession))
}

// Sessions implements [store.Reader].
func (r *reader) Sessions(ctx context.Context, f store.SessionFilter) ([]store.SessionRow, error) {
	q := selectFrom(sessionColumns, "sessions")
	q.of(ctx, r, f.Tenant)
	if f.Prefix != "" {
		q.where("substr(id, 1, ?) = ?", len(f.Prefix), f.Prefix)
	}
	q.orderBy("created_at DESC, id DESC")
	q.limit(f.Limit)
	return all(rows(ctx, r, q, scanSession))
}

// owned counts what there is of a kind.
var owned = map[store.Kind]string{
	store.OwnedSessions:  `(SELECT 1 AS one FROM sessions WHERE tenant = ? AND owner = ? AND state = 'open' LIMIT ?) AS counted`,
	store.OwnedFeeds:     `(SELECT 1 AS one FROM schedules WHERE tenant = ? AND owner_type = ? AND owner_id = ? LIMIT ?) AS counted`,
	store.OwnedKnowledge: `(SELECT 1 AS one FROM kbs WHERE tenant = ? AND created_by = ? LIMIT ?) AS counted`,
	store.OwnedSecrets:   `(SELECT 1 AS one FROM secrets WHERE tenant = ? AND scope = ? AND subject = ? LIMIT ?) AS counted`,
}

// Owned implements [store.Reader].
func (r *reader) Owned(ctx context.Context, kind store.Kind, tenant string, most int, owner ...string) (int, error) {
	q := selectFrom("count(*)", owned[kind])
	q.args = append(q.args, tenant)
	for _, of := range owner {
		q.args = append(q.args, of)
	}
	q.args = append(q.args, most)
	n, err := one(rows(ctx, r, q, func(rows *record, n *int64) error { return rows.Scan(n) }))
	if n == nil {
		return 0, err
	}
	return int(*n), err
}

// InsertSession implements [store.Tx].
func (t *tx) InsertSession(r store.SessionRow) error {
	labels, err := t.array(r.Labels)
	if err != nil {
		return err
	}
	key, err := t.signer()
	if err != nil {
		return t.fail(err)
	}
	r.CreatedAt = fromMicros(micros(r.CreatedAt))
	_, err = t.Exec(insertSession, r.Tenant, r.ID, r.Name, r.Kind, micros(r.CreatedAt), r.Pillar, string(r.State), labels, r.Artifacts, micros(r.UpdatedAt), r.Owner, key.SignKept(r.Digest()))
	return err
}

// SetSessionState implements [store.Tx].
func (t *tx) SetSessionState(tenant, id string, from, to store.SessionState, at time.Time) (bool, error) {
	return t.Exec(`UPDATE sessions SET state = ?, updated_at = ? WHERE tenant = ? AND id = ? AND state = ?`, string(to), micros(at), tenant, id, string(from))
}

// SetSessionPillar implements [store.Tx].
func (t *tx) SetSessionPillar(tenant, id, pillar string, at time.Time) (bool, error) {
	return t.Exec(`UPDATE sessions SET pillar = ?, updated_at = ? WHERE tenant = ? AND id = ?`, pillar, micros(at), tenant, id)
}

// DeleteSession implements [store.Tx].
func (t *tx) DeleteSession(tenant, id string) (hashes []string, found bool, err error) {
	// The session first: a transaction that adds to it has ended then, or will find it
	// gone.
	found, err = t.Exec(`DELETE FROM sessions WHERE tenant = ? AND id = ?`, tenant, id)
	if err != nil || !found {
		return nil, false, err
	}
	q := selectFrom("DISTINCT sha256", "artifacts")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", id)
	q.where("data IS NULL")
	q.orderBy("sha256")
	hashes, err = all(rows(context.Background(), &t.reader, q, func(rows *record, hash *string) error { return rows.Scan(hash) }))
	if err != nil {
		return nil, false, err
	}
	_, err = t.Exec(`DELETE FROM artifacts WHERE tenant = ? AND session_id = ?`, tenant, id)
	return hashes, err == nil, err
}

func scanSession(rows *record, r *store.SessionRow) error {
	var state, labels string
	var created, updated int64
	if err := rows.Scan(&r.Tenant, &r.ID, &r.Name, &r.Kind, &created, &r.Pillar, &state, &labels, &r.Artifacts, &updated, &r.Owner, &r.MAC); err != nil {
		return err
	}
	var err error
	if r.Labels, err = fromArray(labels); err != nil {
		return fmt.Errorf("labels of session %s: %w", r.ID, err)
	}
	r.State, r.CreatedAt, r.UpdatedAt = store.SessionState(state), fromMicros(created), fromMicros(updated)
	return nil
}
