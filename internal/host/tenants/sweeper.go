package tenants

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/host"
)

// A Sweeper finds what is due in any tenant, and has the tenant's own host do it.
type Sweeper struct {
	worker.Sweeper                                                                  // of the site's own tenant, which finds
	Of             func(ctx context.Context, tenant string) (worker.Sweeper, error) // that of a tenant
}

// mostPassed bounds how many items of tenants that are not served are passed over.
const mostPassed = 10_000

// Due implements [worker.Sweeper]. What is of a tenant that is not served stays where it is,
// and keeps nothing else from being found.
func (s Sweeper) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	for ask := limit; ; ask *= 2 {
		all, err := s.Sweeper.Due(host.Everywhere(ctx), ask)
		if err != nil {
			return nil, err
		}
		var due []worker.Item
		for _, item := range all {
			if _, err := s.Of(ctx, item.Tenant); err == nil && len(due) < limit {
				due = append(due, item)
			}
		}
		if len(due) == limit || len(all) < ask || ask >= mostPassed {
			return due, nil
		}
	}
}

// Do implements [worker.Sweeper].
func (s Sweeper) Do(ctx context.Context, item worker.Item) error {
	of, err := s.Of(ctx, item.Tenant)
	if host.IsNotServed(err) {
		return nil // it waits until the tenant is served again
	}
	if err != nil {
		return err
	}
	return of.Do(ctx, item)
}
