package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

// tokenColumns are those that are signed; when a token was last used only happened.
const tokenColumns = `tenant, id, hash, name, principal_type, principal_id, scopes, operations, created_by, asker, created_at, expires_at, revoked_at`

const putToken = `INSERT INTO tokens (` + tokenColumns + `, used_at, used_from) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '')
	ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, name = excluded.name, principal_type = excluded.principal_type, principal_id = excluded.principal_id,
		scopes = excluded.scopes, operations = excluded.operations, created_by = excluded.created_by, asker = excluded.asker,
		created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at
	WHERE tokens.tenant = excluded.tenant`

// Token implements [store.Reader].
func (r *reader) Token(ctx context.Context, id string) (*store.TokenRow, error) {
	q := selectFrom(tokenColumns+", used_at, used_from", "tokens")
	q.of(ctx, r, "")
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanToken))
}

// Tokens implements [store.Reader].
func (r *reader) Tokens(ctx context.Context, tenant string) ([]store.TokenRow, error) {
	q := selectFrom(tokenColumns+", used_at, used_from", "tokens")
	q.where("tenant = ?", tenant)
	q.orderBy("id")
	return all(rows(ctx, r, q, scanToken))
}

// PutToken implements [store.Tx].
func (t *tx) PutToken(r store.TokenRow) error {
	scopes, err := t.array(r.Scopes)
	if err != nil {
		return err
	}
	operations, err := t.array(r.Operations)
	if err != nil {
		return err
	}
	put, err := t.Exec(putToken, r.Tenant, r.ID, r.Hash, r.Name, r.PrincipalType, r.PrincipalID, scopes, operations, r.By, r.Asker,
		micros(r.CreatedAt), micros(r.ExpiresAt), micros(r.RevokedAt))
	if err == nil && !put {
		return t.fail(fmt.Errorf("token %s belongs to another tenant", r.ID))
	}
	return err
}

// UseToken implements [store.Tx].
func (t *tx) UseToken(tenant, id string, at time.Time, from string) error {
	_, err := t.Exec(`UPDATE tokens SET used_at = ?, used_from = ? WHERE tenant = ? AND id = ?`, micros(at), from, tenant, id)
	return err
}

func scanToken(rows *record, r *store.TokenRow) error {
	var scopes, operations string
	var created, expires, revoked, used int64
	if err := rows.Scan(&r.Tenant, &r.ID, &r.Hash, &r.Name, &r.PrincipalType, &r.PrincipalID, &scopes, &operations, &r.By, &r.Asker,
		&created, &expires, &revoked, &used, &r.UsedFrom); err != nil {
		return err
	}
	var err error
	if r.Scopes, err = fromArray(scopes); err != nil {
		return fmt.Errorf("scopes of token %s: %w", r.ID, err)
	}
	if r.Operations, err = fromArray(operations); err != nil {
		return fmt.Errorf("operations of token %s: %w", r.ID, err)
	}
	r.CreatedAt, r.ExpiresAt, r.RevokedAt, r.UsedAt = fromMicros(created), fromMicros(expires), fromMicros(revoked), fromMicros(used)
	return nil
}
