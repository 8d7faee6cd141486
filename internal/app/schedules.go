package app

import (
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// openSchedules makes the engine of the host's feeds, once there is a kernel.
func (a *App) openSchedules() *schedule.Engine {
	return schedule.New(schedule.Options{Store: a.own, Most: a.Config.Limits.PrincipalFeeds, Resolve: a.Registry.Resolve, Call: a.Kernel.Call, Rights: a.guard.RightsNow, Refused: a.runRefused, Stopped: a.feedStopped, Asker: host.OSUser(), Log: a.log})
}

// runRefused records a run of a feed that was refused before the kernel was asked.
func (a *App) runRefused(tx storeTx, s schedule.Schedule, call string, why *plugin.Error) error {
	return a.guard.Note(tx, s.Owner, plugin.EntryFeedRefused, s.ID, map[string]any{"action": "run", "operation": s.Operation, "call_id": call, "code": why.Code, "message": why.Message})
}

// feedStopped records that a feed was paused because what it runs is gone.
func (a *App) feedStopped(tx storeTx, s schedule.Schedule, why *plugin.Error) error {
	return a.guard.Note(tx, s.Owner, plugin.EntryFeedPaused, s.ID, map[string]any{"operation": s.Operation, "code": why.Code, "message": why.Message})
}
