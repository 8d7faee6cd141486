package store

import (
	"context"
)

// A BudgetReader reads what was spent of budgets.
type BudgetReader interface {
	// Spent returns what was spent of a budget so far.
	Spent(ctx context.Context, tenant, subject, period string) (int64, error)
}

// A BudgetWriter is what a transaction may do to them.
type BudgetWriter interface {
	// Spend adds delta to what was spent of a budget, if the total stays within
	// limit, and returns the total as it is then. A negative delta gives back,
	// whatever the limit, and never more than was spent.
	Spend(tenant, subject, period string, delta, limit int64) (total int64, ok bool, err error)

	// ForgetSpent deletes what was spent in periods before one, of names of the same length, of the
	// budgets whose subject is subject, or begins with it and a colon. It deletes at most limit of
	// them and reports whether there were any.
	ForgetSpent(tenant, subject, before string, limit int) (bool, error)
}
