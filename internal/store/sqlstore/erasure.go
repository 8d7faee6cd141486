package sqlstore

import (
	"context"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const erasureColumns = `tenant, id, principal, asked_by, asked_at, peers, counts, done_at`

const putErasure = `INSERT INTO erasures (` + erasureColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, id) DO UPDATE SET peers = excluded.peers, counts = excluded.counts, done_at = excluded.done_at`

// Erasures implements [store.RetentionReader].
func (r *reader) Erasures(ctx context.Context, tenant string, open bool) ([]store.ErasureRow, error) {
	q := selectFrom(erasureColumns, "erasures")
	q.of(ctx, r, tenant)
	if open {
		q.where("done_at = 0")
	}
	q.orderBy("asked_at, id")
	return all(rows(ctx, r, q, func(rows *record, e *store.ErasureRow) (err error) {
		var asked, done int64
		var peers string
		if err := rows.Scan(&e.Tenant, &e.ID, &e.Principal, &e.By, &asked, &peers, &e.Counts, &done); err != nil {
			return err
		}
		e.AskedAt, e.DoneAt = fromMicros(asked), fromMicros(done)
		e.Peers, err = fromArray(peers)
		return err
	}))
}

// ownedBy is the condition that a call, as s, is a person's: made by them, or by another on
// their behalf.
const ownedBy = `(s.principal IN (?, ?) OR s.actor IN (?, ?))`

func owning(who store.Aliases) []any { return []any{who.Name, who.Typed, who.Name, who.Typed} }

// Unsettled implements [store.RetentionReader].
func (r *reader) Unsettled(ctx context.Context, who store.Aliases) (int64, error) {
	var sum int64
	for _, of := range [...]struct {
		table, where string
		args         []any
	}{
		{"calls", `s.state NOT IN ('succeeded', 'failed') AND ` + ownedBy, owning(who)},
		{"plans", `s.state NOT IN ('succeeded', 'failed', 'cancelled') AND s.principal IN (?, ?)`, owning(who)[:2]},
	} {
		q := selectFrom("count(*)", of.table+" s")
		q.where("s.tenant = ?", who.Tenant)
		q.where(of.where, of.args...)
		n, err := one(rows(ctx, r, q, func(rows *record, n *int64) error { return rows.Scan(n) }))
		if err != nil {
			return 0, err
		}
		sum += *n
	}
	return sum, nil
}

// PutErasure implements [store.RetentionWriter].
func (t *tx) PutErasure(r store.ErasureRow) error {
	peers, err := t.array(append([]string{}, r.Peers...))
	if err != nil {
		return err
	}
	_, err = t.Exec(putErasure, r.Tenant, r.ID, r.Principal, r.By, micros(r.AskedAt), peers, r.Counts, micros(r.DoneAt))
	return err
}

// EraseCalls implements [store.RetentionWriter].
func (t *tx) EraseCalls(who store.Aliases, cursor string, at time.Time, limit int) (out store.Removed, next string, err error) {
	q := selectFrom("s.id, '', s.updated_at, s.request_hash, s.result_hash", "calls s")
	q.where("s.tenant = ?", who.Tenant)
	q.where("s.id > ?", cursor)
	q.where(ownedBy, owning(who)...)
	q.where(endedCall + " AND " + unneededCall)
	q.orderBy("s.id")
	q.limit(limit)
	due, err := all(rows(context.Background(), &t.reader, q, scanAged))
	if err != nil {
		return out, "", err
	}
	if out, err = t.removeBodies(who.Tenant, due, store.RemovedByErasure, at); err != nil {
		return out, "", err
	}
	if len(due) == limit {
		return out, due[limit-1].id, nil
	}
	q = selectFrom("p.id, '', p.updated_at, p.request_hash, ''", "plans p WHERE p.tenant = ? AND p.principal IN (?, ?) AND "+endedPlan)
	q.args = []any{who.Tenant, who.Name, who.Typed}
	q.orderBy("p.id")
	q.limit(limit)
	if due, err = all(rows(context.Background(), &t.reader, q, scanAged)); err != nil {
		return out, "", err
	}
	plans, err := t.emptyPlans(who.Tenant, due, store.RemovedByErasure, at)
	out.Count, out.Bytes = out.Count+plans.Count, out.Bytes+plans.Bytes
	if len(due) == limit {
		next = cursor
	}
	return out, next, err
}

// EraseSessions implements [store.RetentionWriter].
func (t *tx) EraseSessions(who store.Aliases, limit int) (store.Removed, error) {
	q := selectFrom("s.id, '', s.updated_at, '', ''", "sessions s LEFT JOIN conversations v ON v.tenant = s.tenant AND v.session_id = s.id")
	q.where("s.tenant = ?", who.Tenant)
	peers := []any{who.Name, who.Typed, who.Name}
	for _, peer := range who.Peers {
		peers = append(peers, peer)
	}
	q.where("(s.owner IN (?, ?) AND (v.session_id IS NULL OR v.peer = '') OR v.peer IN (?"+strings.Repeat(", ?", len(who.Peers))+"))", peers...)
	q.where(`NOT EXISTS (SELECT 1 FROM calls c WHERE c.tenant = s.tenant AND c.session_id <> '' AND c.session_id = s.id AND c.state NOT IN ('succeeded', 'failed'))`)
	q.orderBy("s.id")
	q.limit(limit)
	due, err := all(rows(context.Background(), &t.reader, q, scanAged))
	if err != nil {
		return store.Removed{}, err
	}
	return t.removeSessions(who.Tenant, due)
}

// EraseAccess implements [store.RetentionWriter].
func (t *tx) EraseAccess(who store.Aliases) (map[string]int64, error) {
	counts := map[string]int64{}
	err := t.erase(counts, "browser_sessions", who.Tenant, `user_id IN (SELECT id FROM users WHERE tenant = ? AND principal_type = ? AND principal_id = ?)`, who.Tenant, who.Type, who.ID)
	for _, table := range [...]string{"tokens", "identities", "users"} {
		if err == nil {
			err = t.erase(counts, table, who.Tenant, `principal_type = ? AND principal_id = ?`, who.Type, who.ID)
		}
	}
	return counts, err
}

// erase deletes rows of a table, where there are some: a change of what decides authority
// costs all writers, and a table that is not changed is not signed again.
func (t *tx) erase(counts map[string]int64, table, tenant, where string, args ...any) error {
	args = append([]any{tenant}, args...)
	var n int64
	if _, err := t.Row([]any{&n}, `SELECT count(*) FROM `+table+` WHERE tenant = ? AND `+where, args...); err != nil || n == 0 {
		return err
	}
	counts[table] += n
	_, err := t.Exec(`DELETE FROM `+table+` WHERE tenant = ? AND `+where, args...)
	return err
}

// EraseRows implements [store.RetentionWriter].
func (t *tx) EraseRows(who store.Aliases, limit int) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, part := range []struct {
		table, where string
		args         []any
	}{
		{"kv", `owner <> ':host' AND scope = ?`, []any{who.Typed}},
		{"kv", `owner = ':host' AND scope = 'cache'`, nil}, // whose it is cannot be told: it is made again
		{"secrets", `scope = 'user' AND subject = ?`, []any{who.Typed}},
		{"memories", `agent IN (SELECT id FROM agents WHERE tenant = ? AND created_by = ?)`, []any{who.Tenant, who.Name}},
		{"ticks", `schedule_id IN (SELECT id FROM schedules WHERE tenant = ? AND owner_type = ? AND owner_id = ?)`, []any{who.Tenant, who.Type, who.ID}},
		{"schedules", `owner_type = ? AND owner_id = ?`, []any{who.Type, who.ID}},
		{"outbox", `next_at = 0`, nil}, // likewise
	} {
		if err := t.erase(counts, part.table, who.Tenant, part.where, part.args...); err != nil {
			return nil, err
		}
	}
	q := selectFrom("d.kb_id, d.id, d.updated_at, '', ''", `kb_documents d WHERE d.tenant = ? AND (d.principal IN (?, ?)
		OR d.kb_id IN (SELECT k.id FROM kbs k WHERE k.tenant = ? AND k.created_by = ?))`)
	q.args = []any{who.Tenant, who.Name, who.Typed, who.Tenant, who.Name}
	q.limit(limit)
	documents, err := all(rows(context.Background(), &t.reader, q, scanAged))
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		if _, err := t.DeleteDocument(who.Tenant, d.id, d.other); err != nil {
			return nil, err
		}
		counts["kb_documents"]++
	}
	if len(documents) > 0 {
		return counts, nil
	}
	return counts, t.erase(counts, "kbs", who.Tenant, `created_by = ?`, who.Name)
}
