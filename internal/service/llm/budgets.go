package llm

import (
	"context"
	"sync"
)

// Budgets keeps what was spent, across calls and hosts. All methods are safe for
// concurrent use.
type Budgets interface {
	// Reserve adds amount to what a subject spent in a period and returns true,
	// unless the total would pass limit. Of two concurrent reservations for the
	// rest of a budget one succeeds.
	Reserve(ctx context.Context, tenant, subject, period string, amount, limit MicroCents) (ok bool, err error)
	// Return releases amount of what was reserved. A negative amount adds what was
	// used beyond the reservation, whatever the limit.
	Return(ctx context.Context, tenant, subject, period string, amount MicroCents) error
	// Spent returns the total.
	Spent(ctx context.Context, tenant, subject, period string) (MicroCents, error)
}

// NewBudgets returns budgets in memory, for a host without a store.
func NewBudgets() Budgets { return &memory{spent: map[account]MicroCents{}} }

type account struct{ tenant, subject, period string }

type memory struct {
	mu    sync.Mutex
	spent map[account]MicroCents
}

func (p *memory) Reserve(_ context.Context, tenant, subject, period string, amount, limit MicroCents) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := account{tenant, subject, period}
	if amount > limit-p.spent[a] {
		return false, nil
	}
	p.spent[a] += amount
	return true, nil
}

func (p *memory) Return(_ context.Context, tenant, subject, period string, amount MicroCents) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent[account{tenant, subject, period}] -= amount
	return nil
}

func (p *memory) Spent(_ context.Context, tenant, subject, period string) (MicroCents, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent[account{tenant, subject, period}], nil
}
