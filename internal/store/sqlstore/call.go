package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
)

const callColumns = `tenant, id, operation, key, fingerprint, principal, actor, agent, origin, parent_id, plan_id, session_id,
	labels, version, package_digest, policy_version, input_hash, request_hash, effectful, journalled, state, attempt,
	lease, node, wake_at, deadline, result_hash, code, schema_version, cancelled, created_at, updated_at, journal, removed_at, removed_by`

var insertCall = `INSERT INTO calls (` + callColumns + `, digest) VALUES (?` + strings.Repeat(", ?", 1+strings.Count(callColumns, ",")) + `)
	ON CONFLICT (tenant, operation, key) DO NOTHING`

// fenced is what a [store.Fence] says of its call.
const fenced = `tenant = ? AND id = ? AND state = ? AND attempt = ? AND lease = ?`

const updateCall = `UPDATE calls SET key = ?, state = ?, attempt = ?, lease = ?, node = ?, wake_at = ?, deadline = ?,
	result_hash = ?, code = ?, schema_version = ?, updated_at = ?, journal = ?, digest = ? WHERE ` + fenced

const cancelCall = `UPDATE calls SET cancelled = 1
	WHERE tenant = ? AND id = ? AND state IN ('pending_approval', 'queued', 'running', 'in_progress')`

// Call implements [store.Reader].
func (r *reader) Call(ctx context.Context, tenant, id string) (*store.CallRow, error) {
	q := selectFrom(callColumns, "calls")
	q.where("tenant = ?", tenant)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanCall))
}

// CallByKey implements [store.Reader].
func (r *reader) CallByKey(ctx context.Context, tenant, operation, key string) (*store.CallRow, error) {
	q := selectFrom(callColumns, "calls")
	q.where("tenant = ?", tenant)
	q.where("operation = ?", operation)
	q.where("key = ?", key)
	return one(rows(ctx, r, q, scanCall))
}

// Calls implements [store.Reader].
func (r *reader) Calls(ctx context.Context, f store.CallFilter) ([]store.CallRow, error) {
	q := selectFrom(callColumns, "calls")
	q.of(ctx, r, f.Tenant)
	q.equal("operation", f.Operation)
	q.state(string(f.State), string(store.CallQueued), string(store.CallRunning))
	if f.State != "" && f.State != store.CallSucceeded {
		q.where("state <> 'succeeded'") // the condition of an index
	}
	q.equal("principal", f.Principal)
	if f.Decisions {
		q.where("origin = 'decision'")
	}
	q.equal("session_id", f.Session)
	if f.Plan != "" {
		q.where("plan_id <> ''")
		q.where("plan_id = ?", f.Plan)
	}
	if f.Parent != "" {
		q.where("parent_id <> ''")
		q.where("parent_id = ?", f.Parent)
	}
	q.equal("node", f.Node)
	if f.Live {
		q.where(liveRows["calls"])
	}
	if !f.DueBefore.IsZero() {
		q.where("wake_at <> 0")
		q.where("wake_at <= ?", micros(f.DueBefore))
	}
	if f.Cancelled {
		q.where("cancelled = 1")
	}
	if f.DueBefore.IsZero() {
		q.page(f.Before, f.Limit)
	} else { // the longest waiter is never passed over
		q.orderBy("wake_at, id")
		q.limit(f.Limit)
	}
	return all(rows(ctx, r, q, scanCall))
}

// InsertCall implements [store.Tx].
func (t *tx) InsertCall(r store.CallRow) (*store.CallRow, error) {
	labels, err := t.array(r.Labels)
	if err != nil {
		return nil, err
	}
	digest := r.Digest()
	inserted, err := t.Exec(insertCall,
		r.Tenant, r.ID, r.Operation, r.Key, r.Fingerprint, r.Principal, r.Actor, r.Agent, r.Origin, r.Parent, r.Plan, r.Session,
		labels, r.Version, r.PackageDigest, r.PolicyVersion, r.InputHash, r.RequestHash, flag(r.Effectful), flag(r.Journalled), string(r.State), r.Attempt,
		r.Lease, r.Node, micros(r.WakeAt), micros(r.Deadline), r.ResultHash, r.Code, r.SchemaVersion, flag(r.Cancelled), micros(r.CreatedAt), micros(r.UpdatedAt), r.Journal, micros(r.RemovedAt), r.RemovedBy, digest)
	if err == nil && inserted && r.State.Live() {
		err = t.weigh("calls", "", digest)
	}
	if err != nil || inserted {
		return nil, err
	}
	prior, err := t.CallByKey(context.Background(), r.Tenant, r.Operation, r.Key)
	if err == nil && prior == nil {
		err = t.fail(fmt.Errorf("the key of call %s is taken, and by no call", r.ID))
	}
	return prior, err
}

// UpdateCall implements [store.Tx].
func (t *tx) UpdateCall(f store.Fence, next store.CallRow) (bool, error) {
	was, err := t.journals(f, &next)
	if err != nil {
		return false, err
	}
	digest := next.Digest()
	won, err := t.Exec(updateCall,
		next.Key, string(next.State), next.Attempt, next.Lease, next.Node, micros(next.WakeAt), micros(next.Deadline),
		next.ResultHash, next.Code, next.SchemaVersion, micros(next.UpdatedAt), next.Journal, digest,
		f.Tenant, f.ID, string(f.State), f.Attempt, f.Lease)
	if err != nil || !won {
		return false, err
	}
	prior := next
	prior.State, prior.Attempt, prior.Key, prior.Node, prior.Journal = f.State, f.Attempt, f.Key, f.Node, was
	return true, t.moved("calls", f.State.Live(), prior.Digest(), next.State.Live(), digest)
}

// journals gives next the hash of the effects of its call, and returns the one that the
// call had. An attempt that ends without an answer is followed by another, which sends
// again what the journal does not have. What another wrote since then is not signed: the
// hash stays what it was.
func (t *tx) journals(f store.Fence, next *store.CallRow) (was string, err error) {
	if f.Attempt > 0 && f.State.Live() && f.State != store.CallRunning {
		if _, err := t.Row([]any{&was}, `SELECT journal FROM calls WHERE tenant = ? AND id = ?`, f.Tenant, f.ID); err != nil {
			return "", err
		}
	}
	next.Journal = was
	if !next.State.Live() || next.State == store.CallRunning || next.Attempt == 0 {
		next.Journal = ""
	} else if was == "" {
		effects, err := t.Effects(context.Background(), f.Tenant, f.ID)
		if err != nil {
			return "", err
		}
		next.Journal = store.JournalHash(effects)
	}
	return was, nil
}

// CallToRun implements [store.Reader].
func (r *reader) CallToRun(ctx context.Context, tenant, id string) (*store.CallRow, error) {
	return r.Call(ctx, tenant, id)
}

// CancelCall implements [store.Tx].
func (t *tx) CancelCall(tenant, id string) (bool, error) { return t.Exec(cancelCall, tenant, id) }

// holds reports whether f still holds. If so it does until the transaction ends.
func (t *tx) holds(f store.Fence) (bool, error) {
	var id string
	return t.Row([]any{&id}, `SELECT id FROM calls WHERE `+fenced+t.writer.engine.Keep, f.Tenant, f.ID, string(f.State), f.Attempt, f.Lease)
}

// callState returns the state in which a call is until the transaction ends,
// "" where there is none.
func (t *tx) callState(tenant, id string) (state store.CallState, err error) {
	var text string
	_, err = t.Row([]any{&text}, `SELECT state FROM calls WHERE tenant = ? AND id = ?`+t.writer.engine.Keep, tenant, id)
	return store.CallState(text), err
}

func scanCall(rows *record, r *store.CallRow) error {
	var labels, state string
	var wake, deadline, created, updated, removed int64
	err := rows.Scan(&r.Tenant, &r.ID, &r.Operation, &r.Key, &r.Fingerprint, &r.Principal, &r.Actor, &r.Agent, &r.Origin, &r.Parent, &r.Plan, &r.Session,
		&labels, &r.Version, &r.PackageDigest, &r.PolicyVersion, &r.InputHash, &r.RequestHash, &r.Effectful, &r.Journalled, &state, &r.Attempt,
		&r.Lease, &r.Node, &wake, &deadline, &r.ResultHash, &r.Code, &r.SchemaVersion, &r.Cancelled, &created, &updated, &r.Journal, &removed, &r.RemovedBy)
	if err != nil {
		return err
	}
	if r.Labels, err = fromArray(labels); err != nil {
		return fmt.Errorf("labels of call %s: %w", r.ID, err)
	}
	r.State = store.CallState(state)
	r.WakeAt, r.Deadline, r.CreatedAt, r.UpdatedAt = fromMicros(wake), fromMicros(deadline), fromMicros(created), fromMicros(updated)
	r.RemovedAt = fromMicros(removed)
	return nil
}
