package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/reference"
	"github.com/mortise-dev/mortise/plugin"
)

// root returns the site's own host.
func (a *App) root() *App { return cmp.Or(a.site, a) }

// Tenant returns the host of a tenant. It has a registry, policies, a kernel, agents, plans
// and services of its own, so that nothing that these remember is of two tenants, and uses
// the store, the sandbox, the processes and the queue of the site. The error of one that is
// not there, or that is disabled, is [host.ErrNotServed].
func (a *App) Tenant(ctx context.Context, name string) (*App, error) {
	if name == a.Config.Tenant {
		return a, nil
	}
	if name == a.root().Config.Tenant {
		return a.root(), nil
	}
	return a.root().others.Host(ctx, name)
}

// hostOf returns what surfaces ask of a tenant.
func (a *App) hostOf(ctx context.Context, name string) (*host.Host, error) {
	t, err := a.Tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	return t.Host, nil
}

// openTenant opens the host of a tenant on the machinery of the site.
func (a *App) openTenant(ctx context.Context, name string) (_ *App, err error) {
	t := &App{
		site: a, Home: a.Home, Sandbox: a.Sandbox, Runner: a.Runner, Interpreters: a.Interpreters, Files: a.Files, Jobs: a.Jobs, Telemetry: a.Telemetry,
		recovery: a.recovery, tail: a.tail, turn: a.turn, log: a.log.With("tenant", name), scrubber: a.scrubber, hide: a.hide, scratch: a.scratch,
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if t.Config, t.ConfigPath, err = setup.TenantConfig(a.Home, name, a.Now()); err != nil {
		return nil, err
	}
	t.live.now.Store(&t.Config)
	t.own = a.guarded(a.divide(name))
	t.Store = t.own
	t.guard = &host.Guard{Tenant: name, Owner: t.Config.Principal, Names: host.Names(t.Config), SignInAge: time.Duration(t.Config.Server.SignInAge), Store: t.own, Divided: true, MostSecrets: t.Config.Limits.PrincipalSecrets, MostTokens: t.Config.Limits.PrincipalTokens}
	if t.Principal, err = t.guard.Member(t.Config.Principal); err != nil {
		return nil, err
	}
	t.Reference = reference.Open(t.dir("tenants", name, "reference"))
	if err := t.openKept(ctx); err != nil {
		return nil, err
	}
	return t, t.openNouns(ctx, a.live.options)
}

// asTenant returns the host of the tenant that a command line is for, which closes that of
// the site with it.
func (a *App) asTenant(ctx context.Context) (*App, error) {
	t, err := a.Tenant(ctx, a.live.options.Tenant)
	if host.IsNotServed(err) {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no tenant %.63q that is served; 'mortise tenants list' shows those there are", a.live.options.Tenant)
	}
	if err != nil {
		return nil, err
	}
	if t.Principal, err = t.guard.Member(cmp.Or(a.live.options.As, t.Config.Principal)); err != nil {
		return nil, err
	}
	t.guard.Self, t.outer = t.Config.Principal, true
	t.closers = append([]closer{{"site", a.Close}}, t.closers...)
	return t, nil
}

// checkPackage makes sure that the files of a package are those that were registered. One
// that has changed is held for every tenant that has it.
func (a *App) checkPackage(ctx context.Context, pkg plugin.Package) error {
	holders := slices.DeleteFunc(append(a.others.Now(), a), func(t *App) bool { return !t.Registry.Has(pkg.Digest) })
	if len(holders) == 0 { // a program of the configuration, or a package that is not on record yet
		return a.Registry.CheckPackage(ctx, pkg)
	}
	err := holders[0].Registry.CheckPackage(ctx, pkg)
	if plugin.CodeOf(err) == plugin.CodeQuarantined {
		for _, t := range holders[1:] {
			err = errors.Join(t.Registry.CheckPackage(ctx, pkg), err)
		}
	}
	return err
}

// sweeperOf returns the sweeper of a tenant that stands at a place in its list.
func (a *App) sweeperOf(at int) func(ctx context.Context, tenant string) (worker.Sweeper, error) {
	return func(ctx context.Context, tenant string) (worker.Sweeper, error) {
		t, err := a.Tenant(ctx, tenant)
		if err != nil {
			return nil, err
		}
		return t.sweeps()[at], nil
	}
}
