package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const (
	endedCall = `s.removed_at = 0 AND s.state IN ('succeeded', 'failed')`
	endedPlan = `s.removed_at = 0 AND s.state IN ('succeeded', 'failed', 'cancelled')`

	// A call whose plan or parent has not ended may still be asked what it answered.
	unneededCall = `NOT EXISTS (SELECT 1 FROM plans p WHERE p.tenant = s.tenant AND p.id = s.plan_id AND p.state NOT IN ('succeeded', 'failed', 'cancelled'))
		AND NOT EXISTS (SELECT 1 FROM calls u WHERE u.tenant = s.tenant AND u.id = s.parent_id AND u.state NOT IN ('succeeded', 'failed'))`

	// A session is idle while no call of it is under way, and none was changed since.
	idleSession = `NOT EXISTS (SELECT 1 FROM calls c WHERE c.tenant = s.tenant AND c.session_id <> '' AND c.session_id = s.id
		AND (c.updated_at >= ? OR c.state NOT IN ('succeeded', 'failed')))`
)

// neededBody is the condition that a row which stays needs a body, as b. Every column that has the
// hash of a body is in it; what a model was asked, and all else that only entries of the ledger
// name, has a row of entry_bodies.
const neededBody = `(EXISTS (SELECT 1 FROM calls c WHERE c.tenant = b.tenant AND c.request_hash <> '' AND c.request_hash = b.hash AND c.removed_at = 0)
	OR EXISTS (SELECT 1 FROM calls c WHERE c.tenant = b.tenant AND c.result_hash <> '' AND c.result_hash = b.hash AND c.removed_at = 0)
	OR EXISTS (SELECT 1 FROM effects e JOIN calls c ON c.tenant = e.tenant AND c.id = e.call_id
		WHERE e.tenant = b.tenant AND e.response_hash <> '' AND e.response_hash = b.hash AND c.removed_at = 0)
	OR EXISTS (SELECT 1 FROM approvals a WHERE a.tenant = b.tenant AND a.preview_hash <> '' AND a.preview_hash = b.hash
		AND (EXISTS (SELECT 1 FROM calls c WHERE c.tenant = a.tenant AND c.id = a.subject_id AND c.removed_at = 0)
			OR EXISTS (SELECT 1 FROM plans p WHERE p.tenant = a.tenant AND p.id = a.subject_id AND p.removed_at = 0)))
	OR EXISTS (SELECT 1 FROM plans p WHERE p.tenant = b.tenant AND p.request_hash = b.hash AND p.removed_at = 0)
	OR EXISTS (SELECT 1 FROM entry_bodies n WHERE n.tenant = b.tenant AND n.hash = b.hash))`

// An aged is a row that a period is about.
type aged struct {
	id, other string
	at        int64
	request   string
	result    string
}

// due says in which table a kind is, as s, and which of its rows a period removes.
func due(kind store.Retained, before time.Time) (table, where string, args []any, err error) {
	switch then := micros(before); kind {
	case store.RetainBodies:
		return "calls", `s.updated_at < ? AND ` + endedCall + ` AND ` + unneededCall, []any{then}, nil
	case store.RetainCalls:
		return "calls", `s.updated_at < ? AND s.state IN ('succeeded', 'failed') AND substr(s.key, 1, 2) = 'c:' AND ` + unneededCall, []any{then}, nil
	case store.RetainSessions:
		return "sessions", `s.updated_at < ? AND s.kind <> 'conversation' AND ` + idleSession, []any{then, then}, nil
	case store.RetainConversations:
		return "conversations", `s.updated_at < ? AND s.open = 0`, []any{then}, nil
	case store.RetainDeliveries:
		return "deliveries", `s.at < ?`, []any{then}, nil
	case store.RetainCache:
		return "kv", `(s.owner = ':host' AND s.scope = 'cache' AND s.updated_at < ? OR s.owner <> ':host' AND s.expires_at <> 0 AND s.expires_at < ?)`, []any{then, then}, nil
	}
	return "", "", nil, fmt.Errorf("there is no retention of %q", kind)
}

// sizes say what the bytes of a row of a kind are, and when it was last changed.
var sizes = map[store.Retained][2]string{
	store.RetainBodies: {`(SELECT COALESCE(SUM(length(b.data)), 0) FROM bodies b WHERE b.tenant = s.tenant AND b.hash IN (s.request_hash, s.result_hash))`, `s.updated_at`},
	store.RetainCalls:  {`0`, `s.updated_at`},
	store.RetainSessions: {`(SELECT COALESCE(SUM(a.size), 0) FROM artifacts a WHERE a.tenant = s.tenant AND a.session_id = s.id)`,
		`s.updated_at`},
	store.RetainConversations: {`(SELECT COALESCE(SUM(length(m.body)), 0) FROM messages m WHERE m.tenant = s.tenant AND m.session_id = s.session_id)`, `s.updated_at`},
	store.RetainDeliveries:    {`0`, `s.at`},
	store.RetainCache:         {`length(s.value)`, `s.updated_at`},
}

// Removable implements [store.RetentionReader].
func (r *reader) Removable(ctx context.Context, kind store.Retained, tenant string, before time.Time) (store.Removable, error) {
	if kind == store.RetainPackages {
		return r.removablePackages(ctx, before)
	}
	table, where, args, err := due(kind, before)
	if err != nil {
		return store.Removable{}, err
	}
	size := sizes[kind]
	q := selectFrom(`count(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT), COALESCE(MIN(at), 0)`, `(SELECT `+size[0]+` AS bytes, `+size[1]+` AS at FROM `+table+` s WHERE s.tenant = ? AND `+where+`) AS due`)
	q.args = append([]any{tenant}, args...)
	found, err := one(rows(ctx, r, q, func(rows *record, out *store.Removable) error {
		var oldest int64
		err := rows.Scan(&out.Count, &out.Bytes, &oldest)
		out.Oldest = fromMicros(oldest)
		return err
	}))
	if err != nil || found == nil {
		return store.Removable{}, err
	}
	return *found, nil
}

// oldest returns the rows of a kind that go next.
func (t *tx) oldest(kind store.Retained, of store.Removal) ([]aged, error) {
	table, where, args, err := due(kind, of.Before)
	if err != nil {
		return nil, err
	}
	columns := map[store.Retained]string{
		store.RetainBodies:        `s.id, '', s.updated_at, s.request_hash, s.result_hash`,
		store.RetainCalls:         `s.id, '', s.updated_at, s.request_hash, s.result_hash`,
		store.RetainSessions:      `s.id, '', s.updated_at, '', ''`,
		store.RetainConversations: `s.session_id, '', s.updated_at, '', ''`,
		store.RetainDeliveries:    `s.place, s.mark, s.at, '', ''`,
		store.RetainCache:         `s.owner, s.scope, s.updated_at, s.namespace, s.key`,
	}[kind]
	q := selectFrom(columns, table+" s")
	q.where("s.tenant = ?", of.Tenant)
	q.where(where, args...)
	q.orderBy("3, 1, 2")
	q.limit(of.Limit)
	return all(rows(context.Background(), &t.reader, q, scanAged))
}

func scanAged(rows *record, a *aged) error {
	return rows.Scan(&a.id, &a.other, &a.at, &a.request, &a.result)
}

// Remove implements [store.RetentionWriter].
func (t *tx) Remove(kind store.Retained, of store.Removal) (out store.Removed, err error) {
	if kind == store.RetainPackages {
		return t.removePackages(of)
	}
	due, err := t.oldest(kind, of)
	if err != nil {
		return out, err
	}
	switch kind {
	case store.RetainBodies:
		if len(due) == 0 {
			return t.removePlans(of)
		}
		return t.removeBodies(of.Tenant, due, store.RemovedByRetention, of.At)
	case store.RetainCalls:
		return t.removeCalls(of, due)
	case store.RetainSessions, store.RetainConversations:
		return t.removeSessions(of.Tenant, due)
	}
	for _, row := range due {
		query, args := `DELETE FROM deliveries WHERE tenant = ? AND place = ? AND mark = ?`, []any{of.Tenant, row.id, row.other}
		if kind == store.RetainCache {
			query, args = `DELETE FROM kv WHERE tenant = ? AND owner = ? AND scope = ? AND namespace = ? AND key = ?`, []any{of.Tenant, row.id, row.other, row.request, row.result}
		}
		if _, err := t.Exec(query, args...); err != nil {
			return out, err
		}
		out.Count++
	}
	if kind == store.RetainDeliveries && len(due) == 0 {
		return t.removeDeadLetters(of)
	}
	return out, nil
}

// removeBodies marks calls, and removes what no other row needs of them.
func (t *tx) removeBodies(tenant string, due []aged, by string, at time.Time) (out store.Removed, err error) {
	hashes := map[string]bool{}
	for _, row := range due {
		if _, err := t.Exec(`UPDATE calls SET removed_at = ?, removed_by = ? WHERE tenant = ? AND id = ? AND removed_at = 0`, micros(at), by, tenant, row.id); err != nil {
			return out, err
		}
		hashes[row.request], hashes[row.result] = true, true
		if err := t.releaseBodies(tenant, row.id, hashes); err != nil {
			return out, err
		}
		out.Count++
	}
	bodies, err := t.dropBodies(tenant, hashes)
	out.Bytes = bodies.Bytes
	return out, err
}

// releaseBodies adds the hashes of what effects of a call answered, its approvers were shown, and
// models were asked and answered for it. No entry needs the last of these any more.
func (t *tx) releaseBodies(tenant, id string, hashes map[string]bool) error {
	for _, named := range [...]struct{ table, column, id string }{
		{"effects", "response_hash", "call_id"}, {"approvals", "preview_hash", "subject_id"}, {"entry_bodies", "hash", "subject"},
	} {
		q := selectFrom(named.column, named.table)
		q.where("tenant = ?", tenant)
		q.where(named.id+" = ?", id)
		found, err := all(rows(context.Background(), &t.reader, q, func(rows *record, hash *string) error { return rows.Scan(hash) }))
		if err != nil {
			return err
		}
		for _, hash := range found {
			hashes[hash] = true
		}
	}
	_, err := t.Exec(`DELETE FROM entry_bodies WHERE tenant = ? AND subject = ?`, tenant, id)
	return err
}

// dropBodies removes bodies by their hashes, unless a row needs them. A body is locked before it is asked who
// needs it: another transaction that keeps the same bytes waits, and then puts them there
// again, or was first, and its row is seen.
func (t *tx) dropBodies(tenant string, hashes map[string]bool) (out store.Removed, err error) {
	for _, hash := range slices.Sorted(maps.Keys(hashes)) {
		if hash == "" {
			continue
		}
		var size, one int64
		found, err := t.Row([]any{&size}, `SELECT COALESCE(length(data), 0) FROM bodies WHERE tenant = ? AND hash = ?`+t.writer.engine.Keep, tenant, hash)
		if err != nil {
			return out, err
		}
		if !found {
			continue
		}
		needed, err := t.Row([]any{&one}, `SELECT 1 FROM bodies b WHERE b.tenant = ? AND b.hash = ? AND `+neededBody, tenant, hash)
		if err != nil {
			return out, err
		}
		if needed {
			continue
		}
		if _, err := t.Exec(`DELETE FROM bodies WHERE tenant = ? AND hash = ?`, tenant, hash); err != nil {
			return out, err
		}
		out.Count, out.Bytes = out.Count+1, out.Bytes+size
	}
	return out, nil
}

// RemoveExpired implements [store.RetentionWriter].
func (t *tx) RemoveExpired(tenant string, at time.Time, limit int) (store.Removed, error) {
	q := selectFrom("n.hash, n.subject, n.expires_at, n.principal, ''", "entry_bodies n")
	q.where("n.tenant = ?", tenant)
	q.where("n.expires_at <> 0 AND n.expires_at <= ?", micros(at))
	q.orderBy("n.expires_at, n.hash")
	q.limit(limit)
	named, err := all(rows(context.Background(), &t.reader, q, scanAged))
	if err != nil {
		return store.Removed{}, err
	}
	if len(named) > 0 {
		return t.removeNamed(tenant, named)
	}
	q = selectFrom("b.hash", "bodies b")
	q.where("b.tenant = ?", tenant)
	q.where("b.expires_at <> 0 AND b.expires_at <= ?", micros(at))
	q.where("NOT " + neededBody)
	q.orderBy("b.expires_at, b.hash")
	q.limit(limit)
	expired, err := all(rows(context.Background(), &t.reader, q, func(rows *record, hash *string) error { return rows.Scan(hash) }))
	if err != nil {
		return store.Removed{}, err
	}
	hashes := map[string]bool{}
	for _, hash := range expired {
		hashes[hash] = true
	}
	return t.dropBodies(tenant, hashes)
}

// removeNamed deletes rows of entry_bodies, and the bodies that no row needs after that. It counts
// the rows, so that a caller knows when there are no more.
func (t *tx) removeNamed(tenant string, named []aged) (store.Removed, error) {
	hashes := map[string]bool{}
	for _, n := range named {
		if _, err := t.Exec(`DELETE FROM entry_bodies WHERE tenant = ? AND hash = ? AND subject = ? AND principal = ?`, tenant, n.id, n.other, n.request); err != nil {
			return store.Removed{}, err
		}
		hashes[n.id] = true
	}
	bodies, err := t.dropBodies(tenant, hashes)
	return store.Removed{Count: int64(len(named)), Bytes: bodies.Bytes}, err
}

// removePlans removes what plans were submitted with, and the inputs of their steps.
func (t *tx) removePlans(of store.Removal) (store.Removed, error) {
	q := selectFrom("s.id, '', s.updated_at, s.request_hash, ''", "plans s WHERE s.tenant = ? AND s.updated_at < ? AND "+endedPlan)
	q.args = []any{of.Tenant, micros(of.Before)}
	q.orderBy("3, 1")
	q.limit(of.Limit)
	due, err := all(rows(context.Background(), &t.reader, q, scanAged))
	if err != nil {
		return store.Removed{}, err
	}
	return t.emptyPlans(of.Tenant, due, store.RemovedByRetention, of.At)
}

func (t *tx) emptyPlans(tenant string, due []aged, by string, at time.Time) (out store.Removed, err error) {
	key, err := t.signer()
	if err != nil {
		return out, t.fail(err)
	}
	hashes := map[string]bool{}
	for _, row := range due {
		if _, err := t.Exec(`UPDATE plans SET removed_at = ?, message = '' WHERE tenant = ? AND id = ?`, micros(at), tenant, row.id); err != nil {
			return out, err
		}
		steps, err := t.Steps(context.Background(), tenant, row.id)
		if err != nil {
			return out, err
		}
		for i := range steps {
			s := &steps[i]
			s.Input = `{"removed":"` + by + `"}`
			if _, err := t.Exec(`UPDATE steps SET input = ?, mac = ? WHERE tenant = ? AND plan_id = ? AND n = ?`, s.Input, key.SignKept(s.DigestOf(int64(len(steps)))), tenant, row.id, s.N); err != nil {
				return out, err
			}
		}
		hashes[row.request] = true
		if err := t.releaseBodies(tenant, row.id, hashes); err != nil {
			return out, err
		}
		out.Count++
	}
	bodies, err := t.dropBodies(tenant, hashes)
	out.Bytes = bodies.Bytes
	return out, err
}

// removeCalls deletes calls that no caller has a key of, with all that is theirs.
func (t *tx) removeCalls(of store.Removal, due []aged) (out store.Removed, err error) {
	if out, err = t.removeBodies(of.Tenant, due, store.RemovedByRetention, of.At); err != nil {
		return out, err
	}
	for _, row := range due {
		var asked int64
		found, err := t.Row([]any{&asked}, `SELECT 1 FROM approvals WHERE tenant = ? AND subject_id = ? LIMIT 1`, of.Tenant, row.id)
		if err != nil {
			return out, err
		}
		if found { // not otherwise: the rows of approvals are signed as a whole
			if _, err := t.Exec(`DELETE FROM approvals WHERE tenant = ? AND subject_id = ?`, of.Tenant, row.id); err != nil {
				return out, err
			}
		}
		if _, err := t.Exec(`DELETE FROM effects WHERE tenant = ? AND call_id = ?`, of.Tenant, row.id); err != nil {
			return out, err
		}
		if _, err := t.Exec(`DELETE FROM calls WHERE tenant = ? AND id = ?`, of.Tenant, row.id); err != nil {
			return out, err
		}
	}
	return out, nil
}

// removeSessions deletes sessions with their artifacts and messages.
func (t *tx) removeSessions(tenant string, due []aged) (out store.Removed, err error) {
	for _, row := range due {
		if _, err := t.Exec(`DELETE FROM messages WHERE tenant = ? AND session_id = ?`, tenant, row.id); err != nil {
			return out, err
		}
		if _, err := t.Exec(`DELETE FROM conversations WHERE tenant = ? AND session_id = ?`, tenant, row.id); err != nil {
			return out, err
		}
		bytes, err := t.ArtifactBytes(context.Background(), tenant, row.id)
		if err != nil {
			return out, err
		}
		hashes, _, err := t.DeleteSession(tenant, row.id)
		if err != nil {
			return out, err
		}
		out.Count, out.Bytes = out.Count+1, out.Bytes+bytes
		out.Sessions, out.Hashes = append(out.Sessions, row.id), append(out.Hashes, hashes...)
	}
	return out, nil
}

// removeDeadLetters deletes events that no one tries to deliver any more.
func (t *tx) removeDeadLetters(of store.Removal) (out store.Removed, err error) {
	q := selectFrom("id, '', length(body), '', ''", "outbox WHERE tenant = ? AND next_at = 0 AND created_at < ?")
	q.args = []any{of.Tenant, micros(of.Before)}
	q.orderBy("1")
	q.limit(of.Limit)
	due, err := all(rows(context.Background(), &t.reader, q, scanAged))
	if err != nil {
		return out, err
	}
	for _, row := range due {
		if _, err := t.DeleteOutbox(of.Tenant, row.id); err != nil {
			return out, err
		}
		out.Count, out.Bytes = out.Count+1, out.Bytes+row.at
	}
	return out, nil
}

// Packages that several nodes share are bodies of no tenant: their parts, and a list of the
// hashes of the parts, which a plugin's row names as its path. A body that no row needs is
// marked with the time at which that was first seen, as its expires_at, and removed once the
// mark is older than the period. A package that is registered again, or is being registered,
// clears the mark ([tx.PutBody] keeps for good), and the deletion compares it.

// A sharedBody is a body of no tenant.
type sharedBody struct {
	hash   string
	marked int64 // expires_at; 0 if it is not marked
	size   int64
}

// removePackages marks what no plugin needs any more, and removes what was marked before.
func (t *tx) removePackages(of store.Removal) (out store.Removed, err error) {
	used, err := t.sharedInUse()
	if err != nil {
		return out, err
	}
	q := selectFrom("hash, expires_at, COALESCE(length(data), 0)", "bodies")
	q.where("tenant = ?", "")
	q.orderBy("hash")
	bodies, err := all(rows(context.Background(), &t.reader, q, func(rows *record, b *sharedBody) error { return rows.Scan(&b.hash, &b.marked, &b.size) }))
	if err != nil {
		return out, err
	}
	marks := 0
	mark := func(b sharedBody, to int64) error {
		if marks++; marks > of.Limit {
			return nil // the next run goes on, so that one transaction stays short
		}
		_, err := t.Exec(`UPDATE bodies SET expires_at = ? WHERE tenant = ? AND hash = ? AND expires_at = ?`, to, "", b.hash, b.marked)
		return err
	}
	for _, b := range bodies {
		switch {
		case used[b.hash] && b.marked != 0:
			err = mark(b, 0)
		case !used[b.hash] && b.marked == 0:
			err = mark(b, micros(of.At))
		case !used[b.hash] && b.marked < micros(of.Before) && out.Count < int64(of.Limit):
			var gone bool
			gone, err = t.Exec(`DELETE FROM bodies WHERE tenant = ? AND hash = ? AND expires_at = ?`, "", b.hash, b.marked)
			if gone {
				out.Count, out.Bytes = out.Count+1, out.Bytes+b.size
			}
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// sharedInUse returns the hashes of the bodies that the packages of plugins of all tenants need.
// A list that cannot be read is an error: without it, nothing says which parts are needed.
func (t *tx) sharedInUse() (map[string]bool, error) {
	used := map[string]bool{}
	for _, table := range [...]string{"plugins", "tenant_plugins"} {
		q := selectFrom("path", table)
		q.where("dev = 0")
		q.where("path <> ''")
		paths, err := all(rows(context.Background(), &t.reader, q, func(rows *record, path *string) error { return rows.Scan(path) }))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if used[path] {
				continue
			}
			used[path] = true
			list, err := store.NeededBody(context.Background(), &t.reader, "", path)
			if err != nil {
				return nil, err
			}
			var parts []string
			if err := json.Unmarshal(list, &parts); err != nil {
				return nil, fmt.Errorf("the list of parts %s of a package: %w", path, err)
			}
			for _, part := range parts {
				used[part] = true
			}
		}
	}
	return used, nil
}

// removablePackages returns what was marked before a time.
func (r *reader) removablePackages(ctx context.Context, before time.Time) (store.Removable, error) {
	q := selectFrom("count(*), CAST(COALESCE(SUM(length(data)), 0) AS BIGINT), COALESCE(MIN(expires_at), 0)", "bodies")
	q.where("tenant = ?", "")
	q.where("expires_at <> 0")
	q.where("expires_at < ?", micros(before))
	found, err := one(rows(store.Everywhere(ctx), r, q, func(rows *record, out *store.Removable) error {
		var oldest int64
		err := rows.Scan(&out.Count, &out.Bytes, &oldest)
		out.Oldest = fromMicros(oldest)
		return err
	}))
	if err != nil || found == nil {
		return store.Removable{}, err
	}
	return *found, nil
}
