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

// A personal is rows of a table, as s, that are a person's. What removes such rows and what
// counts those that are left have the same condition.
type personal struct {
	kind  string // as counts name it
	table string
	where string
	args  []any
}

// personalCalls are calls whose bodies are not removed: those that a person made, and those that
// others made on their behalf.
func personalCalls(who store.Aliases) personal {
	return personal{"calls", "calls", `s.removed_at = 0 AND (s.principal IN (?, ?) OR s.actor IN (?, ?))`, []any{who.Name, who.Typed, who.Name, who.Typed}}
}

func personalPlans(who store.Aliases) personal {
	return personal{"plans", "plans", `s.removed_at = 0 AND s.principal IN (?, ?)`, []any{who.Name, who.Typed}}
}

// personalModels are what models were asked and answered for a person.
func personalModels(who store.Aliases) personal {
	return personal{"model_bodies", "entry_bodies", `s.principal IN (?, ?)`, []any{who.Name, who.Typed}}
}

func personalSessions(who store.Aliases) personal {
	args := []any{who.Name, who.Typed}
	for _, peer := range who.Peers {
		args = append(args, peer)
	}
	conversation := `SELECT 1 FROM conversations v WHERE v.tenant = s.tenant AND v.session_id = s.id`
	return personal{"sessions", "sessions", `(s.owner IN (?, ?) AND NOT EXISTS (` + conversation + ` AND v.peer <> '')
		OR EXISTS (` + conversation + ` AND v.channel || '` + store.PeerSeparator + `' || v.peer IN (''` + strings.Repeat(", ?", len(who.Peers)) + `)))`, args}
}

// personalAccess is what lets a person in, in the order in which it is removed.
func personalAccess(who store.Aliases) []personal {
	all := []personal{{"browser_sessions", "browser_sessions", `s.user_id IN (SELECT u.id FROM users u WHERE u.tenant = s.tenant AND u.principal_type = ? AND u.principal_id = ?)`, []any{who.Type, who.ID}}}
	for _, table := range [...]string{"tokens", "identities", "users"} {
		all = append(all, personal{table, table, `s.principal_type = ? AND s.principal_id = ?`, []any{who.Type, who.ID}})
	}
	return all
}

// personalRows are other rows of a person, in the order in which they are removed.
func personalRows(who store.Aliases) []personal {
	return []personal{
		{"kv", "kv", `s.owner <> ':host' AND s.scope = ?`, []any{who.Typed}},
		{"secrets", "secrets", `s.scope = 'user' AND s.subject = ?`, []any{who.Typed}},
		{"ticks", "ticks", `s.schedule_id IN (SELECT f.id FROM schedules f WHERE f.tenant = s.tenant AND f.owner_type = ? AND f.owner_id = ?)`, []any{who.Type, who.ID}},
		{"schedules", "schedules", `s.owner_type = ? AND s.owner_id = ?`, []any{who.Type, who.ID}},
	}
}

func personalMemories(who store.Aliases) personal {
	return personal{"memories", "memories", `s.agent IN (SELECT a.id FROM agents a WHERE a.tenant = s.tenant AND a.created_by = ?)`, []any{who.Name}}
}

func personalDocuments(who store.Aliases) personal {
	return personal{"kb_documents", "kb_documents", `(s.principal IN (?, ?) OR s.kb_id IN (SELECT k.id FROM kbs k WHERE k.tenant = s.tenant AND k.created_by = ?))`, []any{who.Name, who.Typed, who.Name}}
}

func personalKnowledge(who store.Aliases) personal {
	return personal{"kbs", "kbs", `s.created_by = ?`, []any{who.Name}}
}

// ownerless are rows of which no one can tell whose they are. They are not counted as left: others
// make new ones.
var ownerless = []personal{
	{"kv", "kv", `s.owner = ':host' AND s.scope = 'cache'`, nil},
	{"outbox", "outbox", `s.next_at = 0`, nil},
}

// count returns how many rows there are.
func (p personal) count(ctx context.Context, r *reader, tenant string) (int64, error) {
	q := selectFrom("count(*)", p.table+" s")
	q.where("s.tenant = ?", tenant)
	q.where(p.where, p.args...)
	n, err := one(rows(ctx, r, q, func(rows *record, n *int64) error { return rows.Scan(n) }))
	if err != nil {
		return 0, err
	}
	return *n, nil
}

// Unerased implements [store.RetentionReader].
func (r *reader) Unerased(ctx context.Context, who store.Aliases) (map[string]int64, error) {
	left := map[string]int64{}
	all := append(personalAccess(who), personalRows(who)...)
	for _, p := range append(all, personalMemories(who), personalDocuments(who), personalKnowledge(who), personalSessions(who), personalCalls(who), personalPlans(who), personalModels(who)) {
		n, err := p.count(ctx, r, who.Tenant)
		if err != nil {
			return nil, err
		}
		left[p.kind] += n
	}
	return left, nil
}

// Unsettled implements [store.RetentionReader].
func (r *reader) Unsettled(ctx context.Context, who store.Aliases) (sum int64, err error) {
	calls, plans := personalCalls(who), personalPlans(who)
	calls.where += ` AND s.state NOT IN ('succeeded', 'failed')`
	plans.where += ` AND s.state NOT IN ('succeeded', 'failed', 'cancelled')`
	for _, p := range [...]personal{calls, plans} {
		n, err := p.count(ctx, r, who.Tenant)
		if err != nil {
			return 0, err
		}
		sum += n
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
func (t *tx) EraseCalls(who store.Aliases, at time.Time, limit int) (store.Removed, error) {
	due, err := t.personal(personalCalls(who), "s.id, '', s.updated_at, s.request_hash, s.result_hash", who.Tenant, endedCall+" AND "+unneededCall, limit)
	if err != nil {
		return store.Removed{}, err
	}
	return t.removeBodies(who.Tenant, due, store.RemovedByErasure, at)
}

// ErasePlans implements [store.RetentionWriter].
func (t *tx) ErasePlans(who store.Aliases, at time.Time, limit int) (store.Removed, error) {
	due, err := t.personal(personalPlans(who), "s.id, '', s.updated_at, s.request_hash, ''", who.Tenant, endedPlan, limit)
	if err != nil {
		return store.Removed{}, err
	}
	return t.emptyPlans(who.Tenant, due, store.RemovedByErasure, at)
}

// EraseModels implements [store.RetentionWriter].
func (t *tx) EraseModels(who store.Aliases, limit int) (store.Removed, error) {
	due, err := t.personal(personalModels(who), "s.hash, s.subject, s.expires_at, s.principal, ''", who.Tenant, "1 = 1", limit)
	if err != nil {
		return store.Removed{}, err
	}
	return t.removeNamed(who.Tenant, due)
}

// EraseSessions implements [store.RetentionWriter].
func (t *tx) EraseSessions(who store.Aliases, limit int) (store.Removed, error) {
	due, err := t.personal(personalSessions(who), "s.id, '', s.updated_at, '', ''", who.Tenant,
		`NOT EXISTS (SELECT 1 FROM calls c WHERE c.tenant = s.tenant AND c.session_id <> '' AND c.session_id = s.id AND c.state NOT IN ('succeeded', 'failed'))`, limit)
	if err != nil {
		return store.Removed{}, err
	}
	return t.removeSessions(who.Tenant, due)
}

// personal returns the first rows of a kind that can be removed now.
func (t *tx) personal(p personal, columns, tenant, removable string, limit int) ([]aged, error) {
	q := selectFrom(columns, p.table+" s")
	q.where("s.tenant = ?", tenant)
	q.where(p.where, p.args...)
	q.where(removable)
	q.orderBy("1, 2")
	q.limit(limit)
	return all(rows(context.Background(), &t.reader, q, scanAged))
}

// EraseAccess implements [store.RetentionWriter].
func (t *tx) EraseAccess(who store.Aliases) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, p := range personalAccess(who) {
		if err := t.erase(counts, who.Tenant, p); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// erase deletes rows of a table, if there are any: a change of what decides authority
// costs all writers, and a table that is not changed is not signed again.
func (t *tx) erase(counts map[string]int64, tenant string, p personal) error {
	n, err := p.count(context.Background(), &t.reader, tenant)
	if err != nil || n == 0 {
		return t.fail(err)
	}
	counts[p.kind] += n
	_, err = t.Exec(`DELETE FROM `+p.table+` AS s WHERE s.tenant = ? AND `+p.where, append([]any{tenant}, p.args...)...)
	return err
}

// EraseRows implements [store.RetentionWriter].
func (t *tx) EraseRows(who store.Aliases, limit int) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, p := range personalRows(who) {
		if err := t.erase(counts, who.Tenant, p); err != nil {
			return nil, err
		}
	}
	memories, err := t.personal(personalMemories(who), "s.agent, s.key, s.updated_at, '', ''", who.Tenant, "1 = 1", limit)
	if err != nil {
		return nil, err
	}
	for _, m := range memories { // one by one: their words are in the index too
		if _, err := t.DeleteMemory(who.Tenant, m.id, m.other); err != nil {
			return nil, err
		}
		counts["memories"]++
	}
	documents, err := t.personal(personalDocuments(who), "s.kb_id, s.id, s.updated_at, '', ''", who.Tenant, "1 = 1", limit)
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
	return counts, t.erase(counts, who.Tenant, personalKnowledge(who))
}

// EraseShared implements [store.RetentionWriter].
func (t *tx) EraseShared(tenant string) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, p := range ownerless {
		if err := t.erase(counts, tenant, p); err != nil {
			return nil, err
		}
	}
	return counts, nil
}
