package app

import (
	"context"
	"log/slog"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// agents returns what stands around the call of an agent.
func (a *App) agents() *plan.Agents {
	return &plan.Agents{Registry: a.Registry, Policy: a.Policy, Operations: a.operations, MaxInput: func() int { return a.Now().Limits.InputBytes }}
}

// operations returns the names of a plugin's operations that may be shown.
func (a *App) operations(ctx context.Context, ref string) []string {
	shown, err := a.Registry.Show(ctx, ref)
	if err != nil {
		return nil
	}
	return shown.Operations
}

// openPlans returns the engine that makes and runs plans.
func (a *App) openPlans(log *slog.Logger) *plan.Engine {
	return plan.New(plan.Options{
		Kernel: a.Kernel, Registry: a.Registry, Policy: a.Policy, Store: a.own, Answers: a.Ledger, Approvers: approvers{a}, Log: log,
	})
}

// approvers knows who may agree, as far as the configuration names people.
type approvers struct{ app *App }

// Anyone reports whether some principal other than the requester may approve;
// the requester counts if the configuration allows self-approval. Policy files
// and stored policies may name principals that the configuration does not: with
// them, the answer is true.
func (p approvers) Anyone(_ context.Context, targets []*plugin.Target, requester plugin.Principal) bool {
	c := p.app.Now()
	written := func(t policy.Text) bool { return !policy.FromConfiguration(t.Name) }
	if slices.ContainsFunc(p.app.Policy.Documents(), written) {
		return true
	}
	asks := principal.Name(requester)
	return slices.ContainsFunc(host.Names(c), func(name string) bool {
		own := name == asks && !(c.Approvals.Self && name == c.Principal)
		return !own && p.mayAll(principal.Parse(name), targets)
	})
}

// mayAll reports whether policy lets a principal approve all of these
// operations. It asks without arguments: a principal whose right depends on
// them counts as allowed.
func (p approvers) mayAll(who plugin.Principal, targets []*plugin.Target) bool {
	if who.Type == "agent" {
		return false // an agent approves nothing
	}
	return !slices.ContainsFunc(targets, func(t *plugin.Target) bool {
		call := &plugin.Call{Tenant: p.app.Config.Tenant, Principal: who, Origin: plugin.OriginCLI, Operation: t.Name()}
		return p.app.Policy.Ask(&policy.Question{Action: policy.Approve, Target: t, Call: call}).Verdict != plugin.Allow
	})
}
