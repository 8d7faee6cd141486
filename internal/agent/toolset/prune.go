package toolset

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/worker"
)

// Pruning is what is let go of agents by its age. No event wakes what is old: only the
// sweeps find it.
func Pruning(a *agent.Agents, idle, deliveries time.Duration) []worker.Sweeper {
	before := func(age time.Duration) time.Time { return a.Now().UTC().Add(-age) }
	return []worker.Sweeper{
		worker.Sweep{Name: "idle", Find: func(ctx context.Context, limit int) ([]worker.Item, error) {
			rows, err := a.Idle(ctx, before(idle), limit)
			return worker.Items("idle", rows, err, func(r *agent.ConversationRow) (string, string) { return r.Tenant, r.SessionID })
		}, Take: func(ctx context.Context, tenant, id string) error {
			return a.EndIdle(ctx, tenant, id, before(idle))
		}},
		worker.Sweep{Name: "instances", Find: func(_ context.Context, limit int) ([]worker.Item, error) {
			keys := a.IdleInstances(before(idle), limit)
			return worker.Items("instances", keys, nil, func(k *agent.Key) (string, string) { return k.Tenant, k.Agent })
		}, Take: func(_ context.Context, tenant, id string) error {
			return a.StopIdle(tenant, id, before(idle))
		}},
		worker.Sweep{Name: "deliveries", Find: func(ctx context.Context, limit int) ([]worker.Item, error) {
			tenants, err := a.Store.DeliveredBefore(ctx, before(deliveries), limit)
			return worker.Items("deliveries", tenants, err, func(t *string) (string, string) { return *t, "" })
		}, Take: func(ctx context.Context, tenant, _ string) error {
			return a.ForgetDeliveries(ctx, tenant, before(deliveries))
		}},
	}
}
