package app

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/agent/toolset"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/host/tenants"
	"github.com/mortise-dev/mortise/internal/store/job"
)

// openSweepers lists what goes on by itself in a host that stays: what of each kind is
// due in any tenant, and what its own host does with it. Nothing is due while the host is
// in recovery.
func (a *App) openSweepers() {
	for i, s := range a.sweeps() {
		a.Sweepers = append(a.Sweepers, a.recovery.Sweeper(tenants.Sweeper{Sweeper: s, Of: a.sweeperOf(i)}))
	}
}

// sweeps are those of one tenant.
func (a *App) sweeps() []worker.Sweeper {
	return append([]worker.Sweeper{
		worker.Sweep{Name: job.Call, Find: a.dueCalls, Take: a.Kernel.Advance},
		worker.Sweep{Name: job.Plan, Find: func(ctx context.Context, limit int) ([]worker.Item, error) {
			rows, err := a.Plans.Due(ctx, limit)
			return worker.Items(job.Plan, rows, err, func(r *plan.Item) (string, string) { return r.Tenant, r.ID })
		}, Take: func(ctx context.Context, tenant, id string) error {
			_, err := a.Plans.Run(ctx, tenant, id)
			return err
		}},
		// Schedules need no wake-up: the sweep runs often enough.
		worker.Sweep{Name: "schedule", Find: func(ctx context.Context, limit int) ([]worker.Item, error) {
			rows, err := a.Schedules.Due(ctx, limit)
			return worker.Items("schedule", rows, err, func(r *schedule.Row) (string, string) { return r.Tenant, r.ID })
		}, Take: a.Schedules.Advance},
		worker.Sweep{Name: job.Conversation, Find: func(ctx context.Context, limit int) ([]worker.Item, error) {
			rows, err := a.Agents.Waiting(ctx, limit)
			return worker.Items(job.Conversation, rows, err, conversationID)
		}, Take: a.Agents.Advance},
		toolset.WaitingWebhooks{Webhooks: a.tools.Webhooks},
		// Those that were started, and have no instance in this host yet, or were stopped, here
		// or in another process, and still have one. So their plugins hear agent.started@v1 and
		// agent.stopped@v1 when that happens.
		worker.Sweep{Name: job.Agent, Find: a.others.Due(job.Agent, a, func(ctx context.Context, t *App, limit int) (string, []string, error) {
			ids, err := t.Agents.Unsettled(ctx, t.Config.Tenant, limit)
			return t.Config.Tenant, ids, err
		}), Take: a.Agents.Settle},
		worker.Sweep{Name: "removal", Find: a.others.Due("removal", a, func(ctx context.Context, t *App, _ int) (string, []string, error) {
			ids, err := t.Host.Removals(ctx)
			return t.Config.Tenant, ids, err
		}), Take: func(ctx context.Context, _, id string) error { return a.Host.Remove(ctx, id) }},
	}, toolset.Pruning(a.Agents, time.Duration(a.Config.Agents.Idle), time.Duration(a.Config.Agents.Deliveries))...)
}

// dueCalls returns the calls that may run, or of which it is to be asked how they
// ended. Those that waited too long for a person are closed on the way.
func (a *App) dueCalls(ctx context.Context, limit int) ([]worker.Item, error) {
	if _, err := a.Approvals.Expire(ctx); err != nil {
		return nil, err
	}
	rows, err := a.Kernel.Due(ctx, limit)
	return worker.Items(job.Call, rows, err, func(r *callRow) (string, string) { return r.Tenant, r.ID })
}

func conversationID(r *conversationRow) (tenant, id string) { return r.Tenant, r.SessionID }
