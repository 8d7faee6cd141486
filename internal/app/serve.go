package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
)

// Exclusive makes this process the one that serves a data directory, until
// release is called or the process ends, however it ends.
func Exclusive(home string) (release func(), err error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, &SetupError{fmt.Errorf("the data directory cannot be used: %w; --home or MORTISE_HOME names another", err)}
	}
	path := filepath.Join(home, serveLock)
	lock, err := store.TryLock(path)
	if err != nil {
		return nil, &SetupError{err}
	}
	if lock == nil {
		who := "another process"
		if pid, _ := readServing(home); pid != 0 {
			who = fmt.Sprint("process ", pid)
		}
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s serves %s already; stop it, or name another data directory with --home", who, home)
	}
	if err := os.WriteFile(path, servingNote(os.Getpid(), ""), 0o600); err != nil {
		lock.Remove()
		return nil, &SetupError{err}
	}
	return lock.Remove, nil
}

// Work does what is waiting, on this node and beside others, until ctx ends and
// what was begun has ended too, or the time to drain is over.
func (a *App) Work(ctx context.Context) error {
	noting, stop := context.WithCancel(ctx)
	var noted sync.WaitGroup
	noted.Go(func() { a.keepServingNote(noting) })
	defer noted.Wait()
	defer stop()
	return worker.Run(ctx, worker.Options{
		Queue: a.Jobs, Sweepers: a.Sweepers, Recover: a.Ledger.Recover,
		Workers: a.Config.Workers, Drain: time.Duration(a.Config.Drain), Log: a.log,
	})
}

// Healthy returns nil while the host can do what it is for.
func (a *App) Healthy(ctx context.Context) error {
	if err := a.Ledger.Writing(); err != nil {
		return fmt.Errorf("the ledger is not written: %w", err)
	}
	_, err := a.Store.Agents(ctx, a.Config.Tenant)
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
	rows, err := a.Store.Agents(ctx, a.Config.Tenant)
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
	row, err := a.Store.Call(ctx, tenant, call)
	if err != nil || row == nil {
		return
	}
	a.goOn(ctx, row)
}

// goOn wakes the plan of a call that ended outside its plan's run, and notifies
// the plugins of the agent that made the call.
func (a *App) goOn(ctx context.Context, row *store.CallRow) {
	if a.Agents != nil {
		a.Agents.Ended(ctx, row)
	}
	if row.Plan != "" {
		a.wake(ctx, job.Plan, row.Tenant, row.Plan)
	}
}
