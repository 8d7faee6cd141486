package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/store/job"
)

// waitingCalls are the calls that may run, or of which it is to be asked how
// they ended. Those that waited too long for a person are closed on the way.
type waitingCalls struct {
	kernel    *kernel.Kernel
	approvals *approval.Service
}

var _ worker.Sweeper = waitingCalls{}

func (waitingCalls) Kind() string { return job.Call }

func (w waitingCalls) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	if _, err := w.approvals.Expire(ctx); err != nil {
		return nil, err
	}
	rows, err := w.kernel.Due(ctx, limit)
	if err != nil {
		return nil, err
	}
	items := make([]worker.Item, len(rows))
	for i, row := range rows {
		items[i] = worker.Item{Kind: job.Call, Tenant: row.Tenant, ID: row.ID}
	}
	return items, nil
}

func (w waitingCalls) Do(ctx context.Context, item worker.Item) error {
	return w.kernel.Advance(ctx, item.Tenant, item.ID)
}

// waitingPlans are the plans that can go on.
type waitingPlans struct{ engine *plan.Engine }

var _ worker.Sweeper = waitingPlans{}

func (waitingPlans) Kind() string { return job.Plan }

func (w waitingPlans) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	due, err := w.engine.Due(ctx, limit)
	if err != nil {
		return nil, err
	}
	items := make([]worker.Item, len(due))
	for i, d := range due {
		items[i] = worker.Item{Kind: job.Plan, Tenant: d.Tenant, ID: d.ID}
	}
	return items, nil
}

func (w waitingPlans) Do(ctx context.Context, item worker.Item) error {
	_, err := w.engine.Run(ctx, item.Tenant, item.ID)
	return err
}
