package sqlstore

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

const policyColumns = `tenant, name, text, put_by, put_at`

const putPolicy = `INSERT INTO policies (` + policyColumns + `) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (tenant, name) DO UPDATE SET text = excluded.text, put_by = excluded.put_by, put_at = excluded.put_at`

// Policies implements [store.Reader].
func (r *reader) Policies(ctx context.Context, tenant string) ([]store.PolicyRow, error) {
	q := selectFrom(policyColumns, "policies")
	q.where("tenant = ?", tenant)
	q.orderBy("name")
	return all(rows(ctx, r, q, func(rows *record, p *store.PolicyRow) error {
		var at int64
		err := rows.Scan(&p.Tenant, &p.Name, &p.Text, &p.By, &at)
		p.At = fromMicros(at)
		return err
	}))
}

// PutPolicy implements [store.Tx].
func (t *tx) PutPolicy(r store.PolicyRow) error {
	_, err := t.Exec(putPolicy, r.Tenant, r.Name, r.Text, r.By, micros(r.At))
	return err
}

// DeletePolicy implements [store.Tx].
func (t *tx) DeletePolicy(tenant, name string) (bool, error) {
	return t.Exec(`DELETE FROM policies WHERE tenant = ? AND name = ?`, tenant, name)
}
