package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/reload"
	"github.com/mortise-dev/mortise/internal/host/setup"
)

// live is what of a host's configuration changes while it runs.
type live struct {
	reloading sync.Mutex // one at a time
	now       atomic.Pointer[config.Config]
	level     slog.LevelVar   // of the log
	over      *http.Transport // to models; nil where there is none
	options   Options
}

// Now returns the configuration in force: Config, with what was put in force since.
func (a *App) Now() config.Config { return *a.live.now.Load() }

// Reload reads the configuration again and puts in force what may change while the host
// runs. prepare returns what does the same for a surface. On error nothing has changed.
func (a *App) Reload(prepare func(next config.Config) (put func(), err error)) (done reload.Report, err error) {
	l := &a.live
	l.reloading.Lock()
	defer l.reloading.Unlock()
	refuse := func(err error) (reload.Report, error) {
		return done, &setup.Error{Err: fmt.Errorf("the configuration cannot be used, and the one before stays in force: %w", err)}
	}
	if _, err := os.Stat(a.ConfigPath); err != nil { // at the start, no file means the defaults; here it may be about to be written
		return refuse(err)
	}
	read, _, err := setup.ReadConfig(a.Home, l.options.Config)
	if err != nil {
		return refuse(err)
	}
	if read.Database, err = setup.ChooseDatabase(l.options.Database, read.Database); err != nil {
		return refuse(err)
	}
	parts := []reload.Part{a.part()}
	for _, t := range a.others.Now() {
		parts = append(parts, t.part())
	}
	next, done, take, err := reload.Prepare(read, parts, func(name string, site config.Config) (config.Config, error) {
		c, _, err := setup.TenantConfig(a.Home, name, site)
		return c, err
	})
	if err != nil {
		return refuse(err)
	}
	put, err := prepare(next)
	if err != nil {
		return refuse(err)
	}
	take()
	l.level.Set(setup.LogLevel(next.Log.Level))
	put()
	a.log.Warn("the configuration was read again", "changed", done.Changed, "needs_a_restart", done.Restart, "policy", a.Policy.Version())
	return done, nil
}

// part is what a tenant takes up of a configuration that was read again.
func (a *App) part() reload.Part {
	return reload.Part{Name: a.Config.Tenant, Was: a.Now(), Make: func(next config.Config) (func(), error) {
		policies, err := setup.OpenPolicy(next, a.ConfigPath, a.Runner.Level(), a.own)
		return func() {
			a.guard.Adopt(host.Names(next), time.Duration(next.Server.SignInAge), host.Providers(next), next.Approvals.Self)
			a.Policy.Adopt(policies)
			a.Kernel.Limit(next.Limits.InputBytes, next.Limits.OutputBytes, next.Limits.Calls)
			a.quotas.Adopt(setup.QuotaRules(next.Quotas))
			if a.Models != nil {
				a.Models.Adopt(a.dispatcher(next.Models, a.log))
			}
			a.live.now.Store(&next)
		}, err
	}}
}
