package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store/job"
)

// unsettledAgents are those that were started, and have no instance in this host
// yet, or were stopped, here or in another process, and still have one. So their
// plugins hear agent.started@v1 and agent.stopped@v1 when that happens.
type unsettledAgents struct{ app *App }

var _ worker.Sweeper = unsettledAgents{}

// Kind implements [worker.Sweeper].
func (unsettledAgents) Kind() string { return job.Agent }

// Due implements [worker.Sweeper].
func (u unsettledAgents) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	ids, err := u.app.Agents.Unsettled(ctx, u.app.Config.Tenant, limit)
	items := make([]worker.Item, len(ids))
	for i, id := range ids {
		items[i] = worker.Item{Kind: job.Agent, Tenant: u.app.Config.Tenant, ID: id}
	}
	return items, err
}

// Do implements [worker.Sweeper].
func (u unsettledAgents) Do(ctx context.Context, item worker.Item) error {
	return u.app.Agents.Settle(ctx, item.Tenant, item.ID)
}

// elsewhere reports whether the host that serves may be another process.
func (a *App) elsewhere() bool {
	if a.Config.Database != "" {
		return true
	}
	pid, _ := setup.Serving(a.Home)
	return pid != 0
}
