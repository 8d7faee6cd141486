package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/job"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/worker"
	"github.com/mortise-dev/mortise/plugin"
)

// serveLock is the file whose lock the one host has that serves a data
// directory. Its process id is in it.
const serveLock = "serve.lock"

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
		if pid, err := os.ReadFile(path); err == nil && len(pid) > 0 {
			who = "process " + strings.TrimSpace(string(pid))
		}
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s serves %s already; stop it, or name another data directory with --home", who, home)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		lock.Remove()
		return nil, &SetupError{err}
	}
	return lock.Remove, nil
}

// Work does what is waiting, on this node and beside others, until ctx ends and
// what was begun has ended too, or the time to drain is over.
func (a *App) Work(ctx context.Context) error {
	return worker.Run(ctx, worker.Options{
		Queue: a.Jobs, Sweepers: a.Sweepers, Recover: a.Ledger.Recover,
		Workers: a.Config.Workers, Drain: time.Duration(a.Config.Drain), Log: a.log,
	})
}

// wakeTime is how long somebody who wakes others waits for the queue.
const wakeTime = 2 * time.Second

// wake lets some node look at a call or a plan that can go on. If that is lost,
// a sweep finds it.
func (a *App) wake(ctx context.Context, kind, tenant, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTime)
	defer cancel()
	if err := a.Jobs.Wake(ctx, kind, tenant, id, time.Time{}); err != nil {
		a.log.Warn("nobody could be woken; a sweep will find it", "kind", kind, "tenant", tenant, "id", id, "cause", err.Error())
	}
}

func (a *App) wakeCall(ctx context.Context, tenant, id string) { a.wake(ctx, job.Call, tenant, id) }

// goOn wakes the plan of a call that ended while nobody of the plan was there.
func (a *App) goOn(ctx context.Context, row *store.CallRow) {
	if row.Plan != "" {
		a.wake(ctx, job.Plan, row.Tenant, row.Plan)
	}
}
