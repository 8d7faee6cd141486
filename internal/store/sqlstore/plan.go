package sqlstore

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/store"
)

const (
	planColumns = `tenant, id, key, agent, proposal_call, plan_hash, principal, request_hash, labels, created_at,
		state, node, lease, code, message, updated_at`
	stepColumns = `tenant, plan_id, n, step_id, operation, version, package_digest, input, needs, gate, why, mac`
)

const insertPlan = `INSERT INTO plans (` + planColumns + `, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, key) DO NOTHING`

const insertStep = `INSERT INTO steps (` + stepColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const updatePlan = `UPDATE plans SET state = ?, node = ?, lease = ?, code = ?, message = ?, updated_at = ?, digest = ?
	WHERE tenant = ? AND id = ? AND state = ? AND lease = ?`

// A plan can go on where the newest approval that was asked for it is not open, and no
// call of a step waits for a person or is at work.
const (
	notAsked = `NOT EXISTS (SELECT 1 FROM approvals AS asked WHERE asked.tenant = plans.tenant AND asked.subject_id = plans.id
		AND asked.subject_kind = '` + store.SubjectPlan + `' AND asked.state = 'open'
		AND NOT EXISTS (SELECT 1 FROM approvals AS later WHERE later.tenant = asked.tenant AND later.subject_id = asked.subject_id
			AND later.subject_kind = asked.subject_kind AND later.id > asked.id))`
	noStepAtWork = `NOT EXISTS (SELECT 1 FROM calls WHERE calls.tenant = plans.tenant AND calls.plan_id = plans.id AND calls.plan_id <> ''
		AND calls.state IN ('pending_approval', 'running', 'in_progress')
		AND substr(calls.key, 1, length(plans.id) + 3) = 'p:' || plans.id || '/')`
)

// Plan implements [store.Reader].
func (r *reader) Plan(ctx context.Context, tenant, id string) (*store.PlanRow, error) {
	q := selectFrom(planColumns, "plans")
	q.where("tenant = ?", tenant)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanPlan))
}

// PlanByKey implements [store.Reader].
func (r *reader) PlanByKey(ctx context.Context, tenant, key string) (*store.PlanRow, error) {
	q := selectFrom(planColumns, "plans")
	q.where("tenant = ?", tenant)
	q.where("key = ?", key)
	return one(rows(ctx, r, q, scanPlan))
}

// Plans implements [store.Reader].
func (r *reader) Plans(ctx context.Context, f store.PlanFilter) ([]store.PlanRow, error) {
	q := selectFrom(planColumns, "plans")
	q.of(ctx, r, f.Tenant)
	q.state(string(f.State), string(store.PlanQueued), string(store.PlanRunning), string(store.PlanPending))
	q.equal("node", f.Node)
	if f.Live {
		q.where(liveRows["plans"])
	}
	if !f.Ready {
		q.page(f.Before, f.Limit)
		return all(rows(ctx, r, q, scanPlan))
	}
	q.where(notAsked)
	q.where(noStepAtWork)
	if f.After != "" {
		q.where("id > ?", f.After)
	}
	q.orderBy("id")
	q.limit(f.Limit)
	return all(rows(ctx, r, q, scanPlan))
}

// Steps implements [store.Reader].
func (r *reader) Steps(ctx context.Context, tenant, plan string) ([]store.StepRow, error) {
	q := selectFrom(stepColumns, "steps")
	q.where("tenant = ?", tenant)
	q.where("plan_id = ?", plan)
	q.orderBy("n")
	return all(rows(ctx, r, q, scanStep))
}

// InsertPlan implements [store.Tx].
func (t *tx) InsertPlan(r store.PlanRow, steps []store.StepRow) (*store.PlanRow, error) {
	labels, err := t.array(r.Labels)
	if err != nil {
		return nil, err
	}
	digest := r.Digest()
	inserted, err := t.Exec(insertPlan, r.Tenant, r.ID, r.Key, r.Agent, r.ProposalCall, r.Hash, r.Principal, r.RequestHash, labels, micros(r.CreatedAt),
		string(r.State), r.Node, r.Lease, r.Code, r.Message, micros(r.UpdatedAt), digest)
	if err == nil && inserted && r.State.Live() {
		err = t.weigh("plans", "", digest)
	}
	if err != nil {
		return nil, err
	}
	if !inserted {
		prior, err := t.PlanByKey(context.Background(), r.Tenant, r.Key)
		if err == nil && prior == nil {
			err = t.fail(fmt.Errorf("the key of plan %s is taken, and by no plan", r.ID))
		}
		return prior, err
	}
	for _, step := range steps {
		step.Tenant, step.PlanID = r.Tenant, r.ID
		if err := t.insertStep(step, int64(len(steps))); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (t *tx) insertStep(r store.StepRow, steps int64) error {
	needs, err := t.array(r.Needs)
	if err != nil {
		return err
	}
	key, err := t.signer()
	if err != nil {
		return t.fail(err)
	}
	_, err = t.Exec(insertStep, r.Tenant, r.PlanID, r.N, r.StepID, r.Operation, r.Version, r.PackageDigest, r.Input, needs, r.Gate, r.Why, key.SignKept(r.DigestOf(steps)))
	return err
}

// UpdatePlan implements [store.Tx].
func (t *tx) UpdatePlan(f store.PlanFence, next store.PlanRow) (bool, error) {
	digest := next.Digest()
	won, err := t.Exec(updatePlan, string(next.State), next.Node, next.Lease, next.Code, next.Message, micros(next.UpdatedAt), digest,
		f.Tenant, f.ID, string(f.State), f.Lease)
	if err != nil || !won {
		return false, err
	}
	was := next
	was.State, was.Node = f.State, f.Node
	return true, t.moved("plans", f.State.Live(), was.Digest(), next.State.Live(), digest)
}

// PlanToRun implements [store.Reader].
func (r *reader) PlanToRun(ctx context.Context, tenant, id string) (*store.PlanRow, error) {
	return r.Plan(ctx, tenant, id)
}

func scanPlan(rows *record, r *store.PlanRow) error {
	var labels, state string
	var created, updated int64
	err := rows.Scan(&r.Tenant, &r.ID, &r.Key, &r.Agent, &r.ProposalCall, &r.Hash, &r.Principal, &r.RequestHash, &labels, &created,
		&state, &r.Node, &r.Lease, &r.Code, &r.Message, &updated)
	if err != nil {
		return err
	}
	if r.Labels, err = fromArray(labels); err != nil {
		return fmt.Errorf("labels of plan %s: %w", r.ID, err)
	}
	r.State, r.CreatedAt, r.UpdatedAt = store.PlanState(state), fromMicros(created), fromMicros(updated)
	return nil
}

func scanStep(rows *record, r *store.StepRow) error { return scanStepWith(rows, r) }

// scanStepWith reads a step, and more columns after it.
func scanStepWith(rows *record, r *store.StepRow, more ...any) error {
	var needs string
	err := rows.Scan(append([]any{&r.Tenant, &r.PlanID, &r.N, &r.StepID, &r.Operation, &r.Version, &r.PackageDigest, &r.Input, &needs, &r.Gate, &r.Why, &r.MAC}, more...)...)
	if err != nil {
		return err
	}
	if r.Needs, err = fromArray(needs); err != nil {
		return fmt.Errorf("needs of step %s of plan %s: %w", r.StepID, r.PlanID, err)
	}
	return nil
}
