package toolset

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Runners carry each call out in the way that its plugin says.
type Runners struct {
	kernel.Runner // processes
	Scripts       *Scripts
	Mounted       kernel.Runner // of servers that are mounted
	Builtin       kernel.Runner
	Reported      kernel.Runner // of tools that other programs run
}

func (r Runners) of(t *plugin.Target) kernel.Runner {
	switch t.Manifest.Runner.Kind {
	case "script":
		return r.Scripts
	case contract.MCPRunner:
		return r.Mounted
	case "host":
		return r.Builtin
	case plugin.RunnerReported:
		return r.Reported
	}
	return r.Runner
}

// Isolation implements [kernel.Runner].
func (r Runners) Isolation(t *plugin.Target) string { return r.of(t).Isolation(t) }

// Run implements [kernel.Runner].
func (r Runners) Run(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
	return r.of(t).Run(ctx, t, call, s)
}

// Reserve implements [kernel.Reserver]: what runs in the host waits for no process.
func (r Runners) Reserve(ctx context.Context, t *plugin.Target, call *plugin.Call) (with func(context.Context) context.Context, release func(), err error) {
	if runner, able := r.of(t).(kernel.Reserver); able {
		return runner.Reserve(ctx, t, call)
	}
	return func(ctx context.Context) context.Context { return ctx }, func() {}, nil
}

// Room implements [kernel.Roomy].
func (r Runners) Room(t *plugin.Target, call *plugin.Call) error {
	if runner, able := r.of(t).(kernel.Roomy); able {
		return runner.Room(t, call)
	}
	return nil
}

// Preview implements [kernel.Runner].
func (r Runners) Preview(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (json.RawMessage, error) {
	return r.of(t).Preview(ctx, t, call, s)
}

// Reconcile implements [kernel.Runner].
func (r Runners) Reconcile(ctx context.Context, t *plugin.Target, call *plugin.Call, effects []protocol.Effect, s plugin.Services) (protocol.Reconciled, error) {
	return r.of(t).Reconcile(ctx, t, call, effects, s)
}
