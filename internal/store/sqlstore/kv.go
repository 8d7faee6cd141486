package sqlstore

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/store"
)

const kvColumns = `tenant, owner, scope, namespace, key, value, labels, expires_at, updated_at, mac`

const putKV = `INSERT INTO kv (` + kvColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, owner, scope, namespace, key) DO UPDATE SET value = excluded.value,
		expires_at = excluded.expires_at, updated_at = excluded.updated_at, mac = excluded.mac RETURNING labels`

// KV implements [store.Reader].
func (r *reader) KV(ctx context.Context, k store.KVKey) (*store.KVRow, error) {
	q := selectFrom(kvColumns, "kv")
	q.where("tenant = ?", k.Tenant)
	q.where("owner = ?", k.Owner)
	q.where("scope = ?", k.Scope)
	q.where("namespace = ?", k.Namespace)
	q.where("key = ?", k.Key)
	return one(rows(ctx, r, q, scanKV))
}

// PutKV implements [store.Tx].
func (t *tx) PutKV(r store.KVRow) error {
	labels, err := t.array(r.Labels)
	if err != nil {
		return err
	}
	if r.Value == nil {
		r.Value = []byte{}
	}
	if err := t.ofHost(r.KVKey); err != nil {
		return err
	}
	key, err := t.signer()
	if err != nil {
		return t.fail(err)
	}
	var had string
	if _, err := t.Row([]any{&had}, putKV, r.Tenant, r.Owner, r.Scope, r.Namespace, r.Key, r.Value, labels, micros(r.ExpiresAt), micros(r.UpdatedAt), key.SignKept(r.Digest())); err != nil {
		return err
	}
	return t.grow(&r.Labels, labels, had, func() string { return key.SignKept(r.Digest()) }, `UPDATE kv SET labels = ?, mac = ? WHERE tenant = ? AND owner = ? AND scope = ? AND namespace = ? AND key = ?`,
		r.Tenant, r.Owner, r.Scope, r.Namespace, r.Key)
}

// DeleteKV implements [store.Tx].
func (t *tx) DeleteKV(k store.KVKey) (bool, error) {
	if err := t.ofHost(k); err != nil {
		return false, err
	}
	return t.Exec(`DELETE FROM kv WHERE tenant = ? AND owner = ? AND scope = ? AND namespace = ? AND key = ?`, k.Tenant, k.Owner, k.Scope, k.Namespace, k.Key)
}

// DeleteKVs implements [store.Tx].
func (t *tx) DeleteKVs(k store.KVKey) (bool, error) {
	if err := t.ofHost(k); err != nil {
		return false, err
	}
	return t.Exec(`DELETE FROM kv WHERE tenant = ? AND owner = ? AND scope = ? AND namespace = ? AND substr(key, 1, ?) = ?`,
		k.Tenant, k.Owner, k.Scope, k.Namespace, utf8.RuneCountInString(k.Key), k.Key)
}

// ofHost is called before a change of what is kept: what the host keeps of itself is
// signed.
func (t *tx) ofHost(k store.KVKey) error {
	if !k.OfHost() {
		return nil
	}
	return t.fail(t.touch("kv"))
}

func scanKV(rows *record, r *store.KVRow) error {
	var labels string
	var expires, updated int64
	if err := rows.Scan(&r.Tenant, &r.Owner, &r.Scope, &r.Namespace, &r.Key, &r.Value, &labels, &expires, &updated, &r.MAC); err != nil {
		return err
	}
	var err error
	if r.Labels, err = fromArray(labels); err != nil {
		return fmt.Errorf("labels of what %s keeps: %w", r.Owner, err)
	}
	if r.Value == nil { // a driver's way to say no bytes
		r.Value = []byte{}
	}
	r.ExpiresAt, r.UpdatedAt = fromMicros(expires), fromMicros(updated)
	return nil
}
