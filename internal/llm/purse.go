package llm

import (
	"context"
	"sync"
)

// A Purse keeps what was spent, across calls and hosts. All methods are safe
// for concurrent use.
type Purse interface {
	// Reserve adds amount to what a subject spent in a period, unless the total
	// would pass limit; ok tells whether it did. Of two that race for the last
	// of a budget one gets it.
	Reserve(ctx context.Context, tenant, subject, period string, amount, limit MicroCents) (ok bool, err error)
	// Return takes back amount of what was reserved. One below zero adds what
	// was used beyond it, whatever the limit.
	Return(ctx context.Context, tenant, subject, period string, amount MicroCents) error
	// Spent returns the total.
	Spent(ctx context.Context, tenant, subject, period string) (MicroCents, error)
}

// NewPurse returns a purse in memory, for a host that keeps nothing.
func NewPurse() Purse { return &memory{spent: map[account]MicroCents{}} }

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
