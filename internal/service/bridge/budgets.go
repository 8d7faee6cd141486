package bridge

import (
	"context"
	"errors"
	"math"

	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/store"
)

// Budgets keeps in the store what models cost, for all hosts on it.
type Budgets struct{ Of store.Store }

var _ llm.Budgets = Budgets{}

// Reserve implements [llm.Budgets].
func (b Budgets) Reserve(ctx context.Context, tenant, subject, period string, amount, limit llm.MicroCents) (ok bool, err error) {
	err = b.Of.Write(ctx, func(tx store.Tx) (err error) {
		_, ok, err = tx.Spend(tenant, subject, period, amount, limit)
		return err
	})
	return ok && err == nil, err
}

// Return implements [llm.Budgets]. The cost counts even if this node lost its lease
// meanwhile, so the write is repeated then.
func (b Budgets) Return(ctx context.Context, tenant, subject, period string, amount llm.MicroCents) error {
	for {
		err := b.Of.Write(ctx, func(tx store.Tx) error {
			_, _, err := tx.Spend(tenant, subject, period, -amount, math.MaxInt64)
			return err
		})
		if !errors.Is(err, store.ErrLapsed) {
			return err
		}
	}
}

// Counts keeps in the store how often principals called, for all hosts on it.
type Counts struct{ Of store.Store }

// Add adds n to a count within limit; see package quota.
func (c Counts) Add(ctx context.Context, tenant, subject, period string, n, limit int64) (total int64, ok bool, err error) {
	err = c.Of.Write(ctx, func(tx store.Tx) (err error) {
		total, ok, err = tx.Spend(tenant, subject, period, n, limit)
		return err
	})
	return total, ok && err == nil, err
}

// Total returns a count.
func (c Counts) Total(ctx context.Context, tenant, subject, period string) (int64, error) {
	return c.Of.Spent(ctx, tenant, subject, period)
}

// Spent implements [llm.Budgets].
func (b Budgets) Spent(ctx context.Context, tenant, subject, period string) (llm.MicroCents, error) {
	return b.Of.Spent(ctx, tenant, subject, period)
}

// maxForgotten is how many counts one transaction deletes.
const maxForgotten = 500

// Forget deletes counts of days and months that are over; see package quota.
func (c Counts) Forget(ctx context.Context, tenant, subject, day, month string) (more bool, err error) {
	err = c.Of.Write(ctx, func(tx store.Tx) error {
		more = false
		for _, before := range []string{day, month} {
			some, err := tx.ForgetSpent(tenant, subject, before, maxForgotten)
			if err != nil {
				return err
			}
			more = more || some
		}
		return nil
	})
	return more, err
}
