package sqlstore

import (
	"context"
	"math"
	"unicode/utf8"
)

const beginSpend = `INSERT INTO spend (tenant, subject, period, amount) VALUES (?, ?, ?, 0) ON CONFLICT (tenant, subject, period) DO NOTHING`

// The limit stands alone on its side, and less is taken from it than it can
// hold, so that nothing overflows.
const spend = `UPDATE spend SET amount = amount + ? WHERE tenant = ? AND subject = ? AND period = ? AND amount <= ?`

const giveBack = `UPDATE spend SET amount = CASE WHEN amount > ? THEN amount - ? ELSE 0 END WHERE tenant = ? AND subject = ? AND period = ?`

// Spent implements [store.Reader].
func (r *reader) Spent(ctx context.Context, tenant, subject, period string) (int64, error) {
	q := selectFrom("amount", "spend")
	q.where("tenant = ?", tenant)
	q.where("subject = ?", subject)
	q.where("period = ?", period)
	amount, err := one(rows(ctx, r, q, func(rows *record, n *int64) error { return rows.Scan(n) }))
	if err != nil || amount == nil {
		return 0, err
	}
	return *amount, nil
}

// Spend implements [store.Tx].
func (t *tx) Spend(tenant, subject, period string, delta, limit int64) (total int64, ok bool, err error) {
	if delta < 0 {
		back := -max(delta, -math.MaxInt64)
		_, err = t.Exec(giveBack, back, back, tenant, subject, period)
		ok = err == nil
	} else if _, err = t.Exec(beginSpend, tenant, subject, period); err == nil && delta <= limit {
		ok, err = t.Exec(spend, delta, tenant, subject, period, limit-delta)
	}
	if err != nil {
		return 0, false, err
	}
	total, err = t.Spent(context.Background(), tenant, subject, period)
	return total, ok && err == nil, err
}

const forgetSpent = `DELETE FROM spend WHERE tenant = ? AND (subject, period) IN (SELECT subject, period FROM spend
	WHERE tenant = ? AND (subject = ? OR substr(subject, 1, ?) = ?) AND length(period) = ? AND period < ? LIMIT ?)`

// ForgetSpent implements [store.Tx].
func (t *tx) ForgetSpent(tenant, subject, before string, limit int) (bool, error) {
	begins := subject + ":"
	return t.Exec(forgetSpent, tenant, tenant, subject, utf8.RuneCountInString(begins), begins, utf8.RuneCountInString(before), before, limit)
}

// Claim implements [store.Tx].
func (t *tx) Claim(name, value string) (holder string, err error) {
	if _, err := t.Exec(`INSERT INTO claims (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`, name, value); err != nil {
		return "", err
	}
	_, err = t.Row([]any{&holder}, `SELECT value FROM claims WHERE name = ?`, name)
	return holder, err
}
