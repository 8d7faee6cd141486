package sqlstore

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

const approvalColumns = `tenant, id, subject_kind, subject_id, binding_hash, preview_hash, token_hash, requester, package_digest,
	policy_version, why, created_at, expires_at, state, decided_by, reason, decided_at, asker, mac`

const insertApproval = `INSERT INTO approvals (` + approvalColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '')`

const updateApproval = `UPDATE approvals SET state = ?, decided_by = ?, reason = ?, decided_at = ?
	WHERE tenant = ? AND id = ? AND state = ?`

// Approval implements [store.Reader].
func (r *reader) Approval(ctx context.Context, tenant, id string) (*store.ApprovalRow, error) {
	q := selectFrom(approvalColumns, "approvals")
	q.where("tenant = ?", tenant)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanApproval))
}

// ApprovalByToken implements [store.Reader].
func (r *reader) ApprovalByToken(ctx context.Context, tenant, tokenHash string) (*store.ApprovalRow, error) {
	q := selectFrom(approvalColumns, "approvals")
	q.where("tenant = ?", tenant)
	q.where("token_hash <> ''") // no token is not a token
	q.where("token_hash = ?", tokenHash)
	return one(rows(ctx, r, q, scanApproval))
}

// Approvals implements [store.Reader].
func (r *reader) Approvals(ctx context.Context, f store.ApprovalFilter) ([]store.ApprovalRow, error) {
	q := selectFrom(approvalColumns, "approvals")
	q.of(ctx, r, f.Tenant)
	q.state(string(f.State), string(store.ApprovalOpen))
	q.equal("subject_kind", f.SubjectKind)
	q.equal("subject_id", f.SubjectID)
	if !f.ExpiresBefore.IsZero() {
		q.where("expires_at <> 0")
		q.where("expires_at < ?", micros(f.ExpiresBefore))
	}
	q.page(f.Before, f.Limit)
	return all(rows(ctx, r, q, scanApproval))
}

// InsertApproval implements [store.Tx].
func (t *tx) InsertApproval(r store.ApprovalRow) error {
	if _, err := t.Exec(insertApproval, r.Tenant, r.ID, r.SubjectKind, r.SubjectID, r.Binding, r.PreviewHash, r.TokenHash, r.Requester, r.PackageDigest,
		r.PolicyVersion, r.Why, micros(r.CreatedAt), micros(r.ExpiresAt), string(r.State), r.DecidedBy, r.Reason, micros(r.DecidedAt), r.Asker); err != nil || !r.State.Closed() {
		return err
	}
	return t.signClosed(r.Tenant, r.ID)
}

// UpdateApproval implements [store.Tx].
func (t *tx) UpdateApproval(from store.ApprovalState, next store.ApprovalRow) (bool, error) {
	won, err := t.Exec(updateApproval, string(next.State), next.DecidedBy, next.Reason, micros(next.DecidedAt), next.Tenant, next.ID, string(from))
	if err != nil || !won || !next.State.Closed() {
		return won, err
	}
	return true, t.signClosed(next.Tenant, next.ID)
}

// signClosed signs an approval that takes no answer any more: the head signs those
// that do, and the others are too many for that.
func (t *tx) signClosed(tenant, id string) error {
	row, err := t.reader.Approval(context.Background(), tenant, id)
	if err != nil || row == nil {
		return err
	}
	key, err := t.signer()
	if err != nil {
		return t.fail(err)
	}
	_, err = t.Exec(`UPDATE approvals SET mac = ? WHERE tenant = ? AND id = ?`, store.SignClosed(key, *row), tenant, id)
	return err
}

// Verify implements [store.Verifier].
func (t *tx) Verify(_ context.Context, earlier func(context.Context, store.Reader, *store.Key) (bool, error), check func(*store.Key) error) error {
	key, err := t.signer()
	if err != nil {
		return t.fail(err)
	}
	wrong := check(key)
	if wrong == nil {
		return nil
	}
	if none, err := earlier(context.Background(), &t.reader, key); err != nil || none {
		return t.fail(err)
	}
	return t.fail(wrong)
}

func scanApproval(rows *record, r *store.ApprovalRow) error {
	var state string
	var created, expires, decided int64
	err := rows.Scan(&r.Tenant, &r.ID, &r.SubjectKind, &r.SubjectID, &r.Binding, &r.PreviewHash, &r.TokenHash, &r.Requester, &r.PackageDigest,
		&r.PolicyVersion, &r.Why, &created, &expires, &state, &r.DecidedBy, &r.Reason, &decided, &r.Asker, &r.MAC)
	r.State = store.ApprovalState(state)
	r.CreatedAt, r.ExpiresAt, r.DecidedAt = fromMicros(created), fromMicros(expires), fromMicros(decided)
	return err
}
