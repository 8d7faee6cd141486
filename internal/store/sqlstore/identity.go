package sqlstore

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/store"
)

const identityColumns = `tenant, provider, external_id, principal_type, principal_id, scopes, linked_by, linked_at, adapter`

const putIdentity = `INSERT INTO identities (` + identityColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, provider, external_id) DO UPDATE SET principal_type = excluded.principal_type, principal_id = excluded.principal_id,
		scopes = excluded.scopes, linked_by = excluded.linked_by, linked_at = excluded.linked_at, adapter = excluded.adapter`

// Identity implements [store.Reader].
func (r *reader) Identity(ctx context.Context, tenant, provider, externalID string) (*store.IdentityRow, error) {
	q := selectFrom(identityColumns, "identities")
	q.where("tenant = ?", tenant)
	q.where("provider = ?", provider)
	q.where("external_id = ?", externalID)
	return one(rows(ctx, r, q, scanIdentity))
}

// Identities implements [store.Reader].
func (r *reader) Identities(ctx context.Context, tenant string) ([]store.IdentityRow, error) {
	q := selectFrom(identityColumns, "identities")
	q.where("tenant = ?", tenant)
	q.orderBy("provider, external_id")
	return all(rows(ctx, r, q, scanIdentity))
}

// IdentitiesOf implements [store.Reader].
func (r *reader) IdentitiesOf(ctx context.Context, tenant, principalType, principalID string) ([]store.IdentityRow, error) {
	q := selectFrom(identityColumns, "identities")
	q.where("tenant = ?", tenant)
	q.where("principal_type = ?", principalType)
	q.where("principal_id = ?", principalID)
	q.orderBy("provider, external_id")
	return all(rows(ctx, r, q, scanIdentity))
}

// PutIdentity implements [store.Tx].
func (t *tx) PutIdentity(r store.IdentityRow) error {
	scopes, err := t.array(r.Scopes)
	if err != nil {
		return err
	}
	_, err = t.Exec(putIdentity, r.Tenant, r.Provider, r.ExternalID, r.PrincipalType, r.PrincipalID, scopes, r.By, micros(r.At), r.Adapter)
	return err
}

// DeleteIdentity implements [store.Tx].
func (t *tx) DeleteIdentity(tenant, provider, externalID string) (bool, error) {
	return t.Exec(`DELETE FROM identities WHERE tenant = ? AND provider = ? AND external_id = ?`, tenant, provider, externalID)
}

func scanIdentity(rows *record, r *store.IdentityRow) error {
	var scopes string
	var at int64
	if err := rows.Scan(&r.Tenant, &r.Provider, &r.ExternalID, &r.PrincipalType, &r.PrincipalID, &scopes, &r.By, &at, &r.Adapter); err != nil {
		return err
	}
	var err error
	if r.Scopes, err = fromArray(scopes); err != nil {
		return fmt.Errorf("scopes of %s on %s: %w", r.ExternalID, r.Provider, err)
	}
	r.At = fromMicros(at)
	return nil
}
