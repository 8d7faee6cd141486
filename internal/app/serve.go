package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
)

// Work does what is waiting, on this node and beside others, until ctx ends and
// what was begun has ended too, or the time to drain is over.
func (a *App) Work(ctx context.Context) error {
	noting, stop := context.WithCancel(ctx)
	var noted sync.WaitGroup
	noted.Go(func() { setup.KeepServingNote(noting, a.Home, a.Ledger.Writing, a.log) })
	noted.Go(func() { archive.KeepBackups(noting, a.backups, a.log) })
	defer noted.Wait()
	defer stop()
	return worker.Run(ctx, worker.Options{
		Queue: a.Jobs, Sweepers: a.Sweepers, Recover: a.Ledger.Recover,
		Workers: a.Config.Workers, Drain: time.Duration(a.Config.Drain), SweepEvery: a.sweepEvery, Log: a.log,
	})
}

// backups returns the scheduled backups as they are configured now.
func (a *App) backups() archive.Series {
	return archive.Series{Home: a.Home, Config: a.ConfigPath, Database: a.Config.Database, Settings: a.live.now.Load().Backups}
}

// Healthy returns nil while the host can record calls and has loaded the stored policies.
func (a *App) Healthy(ctx context.Context) error {
	if err := a.Ledger.Writing(); err != nil {
		return fmt.Errorf("the ledger is not written: %w", err)
	}
	for _, t := range append(a.others.Now(), a) {
		if err := t.Policy.Behind(); err != nil {
			return fmt.Errorf("this node cannot load the stored policies of tenant %s: %w", t.Config.Tenant, err)
		}
	}
	_, err := a.own.Agents(ctx, a.Config.Tenant)
	return err
}

// As returns what a principal may ask of the host.
func (a *App) As(by plugin.Principal) host.API { return a.Host.As(by) }

// Owner reports whether the principal is the one that the configuration itself
// acts for: the user at the terminal.
func (a *App) Owner() bool { return principal.Name(a.Principal) == a.Config.Principal }

// Log is where the host writes what it does.
func (a *App) Log() *slog.Logger { return a.log }

// Reached returns the agents that have channels.
func (a *App) Reached(ctx context.Context) ([]string, error) {
	rows, err := a.own.Agents(ctx, a.Config.Tenant)
	var ids []string
	for _, row := range rows {
		if s, err := agent.ParseSettings([]byte(row.Settings)); err == nil && len(s.Channels) > 0 {
			ids = append(ids, row.ID)
		}
	}
	return ids, err
}

// wakeTime bounds how long a wake-up waits for the queue.
const wakeTime = 2 * time.Second

// wake lets some node look at something that can go on. If that is lost,
// a sweep finds it.
func (a *App) wake(ctx context.Context, kind, tenant, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTime)
	defer cancel()
	if err := a.Jobs.Wake(ctx, kind, tenant, id, time.Time{}); err != nil {
		a.log.Warn("sending a wake-up failed; a sweep will find the work", "kind", kind, "tenant", tenant, "id", id, "cause", err.Error())
	}
}

func (a *App) wakeCall(ctx context.Context, tenant, id string) { a.wake(ctx, job.Call, tenant, id) }

// unapproved is goOn for a call that failed for want of an approval.
func (a *App) unapproved(ctx context.Context, tenant, call string) {
	t, err := a.root().Tenant(ctx, tenant)
	if err != nil {
		return
	}
	row, err := t.own.Call(ctx, tenant, call)
	if err != nil || row == nil {
		return
	}
	t.goOn(ctx, row)
}

// goOn wakes the plan of a call that ended outside its plan's run, and notifies
// the plugins of the agent that made the call.
func (a *App) goOn(ctx context.Context, row *callRow) {
	if a.Agents != nil {
		a.Agents.Ended(ctx, row)
	}
	if row.Plan != "" {
		a.wake(ctx, job.Plan, row.Tenant, row.Plan)
	}
}

// follow keeps the policies of a host that stays up to date.
func (a *App) follow(log *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		a.Policy.Follow(ctx, followEvery, func(err error) {
			if err == nil {
				log.Info("the policies can be used again", "policy", a.Policy.Version())
				return
			}
			left := "those before stay in force"
			if a.Policy.Behind() != nil {
				left = "stored ones changed, so every call is denied"
			}
			log.Error("the policies cannot be used: "+left, "policy", a.Policy.Version(), "cause", err.Error())
		})
	})
	a.opened("policies", func() error { cancel(); done.Wait(); return nil })
}

// followEvery is how soon a host that stays hears of a change to its policies.
const followEvery = time.Second

// Writable returns nil if a write to the database reaches the disk.
func (a *App) Writable(ctx context.Context) error { return setup.Writable(ctx, a.own, a.Config.Tenant) }

// elsewhere reports whether the host that serves may be another process.
func (a *App) elsewhere() bool {
	if a.Config.Database != "" {
		return true
	}
	pid, _ := setup.Serving(a.Home)
	return pid != 0
}
