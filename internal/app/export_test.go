package app

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/toolset"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/plugin"
)

// Sweeper returns one of the host's, by its kind.
func (a *App) Sweeper(kind string) worker.Sweeper {
	for _, s := range a.Sweepers {
		if s.Kind() == kind {
			return s
		}
	}
	return nil
}

// WaitForWebhooks has failed events wait for that long, each time in turn.
func (a *App) WaitForWebhooks(waits ...time.Duration) { a.tools.Webhooks.Waits = waits }

// IdleAfter returns what closes conversations of which nothing was heard for that
// long.
func (a *App) IdleAfter(d time.Duration) worker.Sweeper {
	return toolset.Pruning(a.Agents, d, time.Hour)[0]
}

// SweepEvery sets the time between two sweeps of a host that works. Call it before Work.
func (a *App) SweepEvery(d time.Duration) { a.sweepEvery = d }

// Hold is what stands before each call with effects.
func (a *App) Hold(ctx context.Context) error { return a.recovery.Hold(ctx) }

// Sender returns the principal that a sender of a channel stands for.
func (a *App) Sender(ctx context.Context, channel, id string) (plugin.Principal, error) {
	who, _, _, err := a.sender(ctx, a.Config.Tenant, channel, id)
	return who, err
}

// Forget has the host look again which tenants there are.
func (a *App) Forget() {
	a.others.Forget()
}
