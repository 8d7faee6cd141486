package app

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// openSchedules makes the engine of the host's feeds, once there is a kernel.
func (a *App) openSchedules() *schedule.Engine {
	return schedule.New(schedule.Options{Store: a.own, Resolve: a.Registry.Resolve, Call: a.Kernel.Call, Rights: a.rightsNow, Refused: a.runRefused, Stopped: a.feedStopped, Asker: host.OSUser(), Log: a.log})
}

// runRefused records a run of a feed that was refused before the kernel was asked.
func (a *App) runRefused(tx storeTx, s schedule.Schedule, call string, why *plugin.Error) error {
	return a.guard.Note(tx, s.Owner, plugin.EntryFeedRefused, s.ID, map[string]any{"action": "run", "operation": s.Operation, "call_id": call, "code": why.Code, "message": why.Message})
}

// feedStopped records that a feed was paused because what it runs is gone.
func (a *App) feedStopped(tx storeTx, s schedule.Schedule, why *plugin.Error) error {
	return a.guard.Note(tx, s.Owner, plugin.EntryFeedPaused, s.ID, map[string]any{"operation": s.Operation, "code": why.Code, "message": why.Message})
}

// rightsNow returns the owner with those of its scopes that it still has, and
// the zero Principal if the configuration no longer names it.
func (a *App) rightsNow(_ context.Context, tenant string, owner plugin.Principal) plugin.Principal {
	if !a.guard.Known(tenant, owner) {
		return plugin.Principal{}
	}
	now, err := a.guard.Member(principal.Name(owner))
	if err != nil {
		return plugin.Principal{}
	}
	switch {
	case slices.Contains(now.Scopes, "*"):
	case slices.Contains(owner.Scopes, "*"):
		owner.Scopes = now.Scopes
	default:
		owner.Scopes = slices.DeleteFunc(slices.Clone(owner.Scopes), func(scope string) bool { return !slices.Contains(now.Scopes, scope) })
	}
	return owner
}
