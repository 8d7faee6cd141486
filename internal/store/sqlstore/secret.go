package sqlstore

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

const (
	secretColumns    = `tenant, owner, scope, subject, name, ciphertext, key_id, updated_at`
	secretKeyColumns = `n, master, wrapped, created_at`
)

const putSecret = `INSERT INTO secrets (` + secretColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, owner, scope, subject, name) DO UPDATE SET ciphertext = excluded.ciphertext, key_id = excluded.key_id,
		updated_at = excluded.updated_at`

// Secret implements [store.Reader].
func (r *reader) Secret(ctx context.Context, n store.SecretName) (*store.SecretRow, error) {
	q := selectFrom(secretColumns, "secrets")
	q.where("tenant = ?", n.Tenant)
	q.where("owner = ?", n.Owner)
	q.where("scope = ?", n.Scope)
	q.where("subject = ?", n.Subject)
	q.where("name = ?", n.Name)
	return one(rows(ctx, r, q, scanSecret))
}

// Secrets implements [store.Reader].
func (r *reader) Secrets(ctx context.Context, f store.SecretFilter) ([]store.SecretRow, error) {
	q := selectFrom(secretColumns, "secrets")
	q.of(ctx, r, f.Tenant)
	if f.Before > 0 {
		q.where("key_id < ?", f.Before)
	}
	q.orderBy("tenant, name, owner, scope, subject")
	q.limit(f.Limit)
	return all(rows(ctx, r, q, scanSecret))
}

// SecretKeys implements [store.Reader].
func (r *reader) SecretKeys(ctx context.Context) ([]store.SecretKeyRow, error) {
	q := selectFrom(secretKeyColumns, "secret_keys")
	q.orderBy("n")
	return all(rows(ctx, r, q, func(rows *record, k *store.SecretKeyRow) error {
		var created int64
		err := rows.Scan(&k.N, &k.Master, &k.Wrapped, &created)
		k.CreatedAt = fromMicros(created)
		return err
	}))
}

// PutSecret implements [store.Tx].
func (t *tx) PutSecret(r store.SecretRow) (bool, error) {
	// The key is held, so that it does not go while something is encrypted with it.
	held, err := t.Exec(`UPDATE secret_keys SET created_at = created_at WHERE n = ?`, r.Key)
	if err != nil || !held {
		return false, err
	}
	var last int64
	if _, err := t.Row([]any{&last}, `SELECT max(n) FROM secret_keys`); err != nil || last != r.Key {
		return false, err
	}
	_, err = t.Exec(putSecret, r.Tenant, r.Owner, r.Scope, r.Subject, r.Name, r.Ciphertext, r.Key, micros(r.UpdatedAt))
	return err == nil, err
}

// DeleteSecret implements [store.Tx].
func (t *tx) DeleteSecret(n store.SecretName) (bool, error) {
	return t.Exec(`DELETE FROM secrets WHERE tenant = ? AND owner = ? AND scope = ? AND subject = ? AND name = ?`, n.Tenant, n.Owner, n.Scope, n.Subject, n.Name)
}

// InsertSecretKey implements [store.Tx].
func (t *tx) InsertSecretKey(r store.SecretKeyRow) (bool, error) {
	return t.Exec(`INSERT INTO secret_keys (`+secretKeyColumns+`) VALUES (?, ?, ?, ?) ON CONFLICT (n) DO NOTHING`, r.N, r.Master, r.Wrapped, micros(r.CreatedAt))
}

// RewrapSecretKey implements [store.Tx].
func (t *tx) RewrapSecretKey(n int64, from, master string, wrapped []byte) (bool, error) {
	return t.Exec(`UPDATE secret_keys SET master = ?, wrapped = ? WHERE n = ? AND master = ?`, master, wrapped, n, from)
}

// DeleteSecretKeys implements [store.Tx].
func (t *tx) DeleteSecretKeys(before int64) (bool, error) {
	// A transaction that is using one of them is waited for, and its result then seen.
	if _, err := t.Exec(`UPDATE secret_keys SET created_at = created_at WHERE n < ?`, before); err != nil {
		return false, err
	}
	return t.Exec(`DELETE FROM secret_keys WHERE n < ? AND NOT EXISTS (SELECT 1 FROM secrets WHERE key_id = secret_keys.n)`, before)
}

func scanSecret(rows *record, r *store.SecretRow) error {
	var updated int64
	err := rows.Scan(&r.Tenant, &r.Owner, &r.Scope, &r.Subject, &r.Name, &r.Ciphertext, &r.Key, &updated)
	r.UpdatedAt = fromMicros(updated)
	return err
}
