package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/reference"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// others are the hosts of the tenants beside the site's own. Each is opened when it is first
// needed, and closed once its tenant is disabled: it has a registry, policies, a kernel,
// agents, plans and services of its own, so that nothing that these remember is of two
// tenants, and uses the store, the sandbox, the processes and the queue of the site.
type others struct {
	divide func(tenant string) store.Store

	mu     sync.Mutex // held while one is opened
	open   map[string]*App
	failed map[string]refusal
	looked time.Time
	served []string
	ending sync.WaitGroup
}

// A refusal is why a tenant could not be opened, which is said again for a while.
type refusal struct {
	err   error
	until time.Time
}

// Bounds of how old what is known of tenants may be.
const (
	believedFor = time.Second
	refusedFor  = time.Second
)

// root returns the site's own host.
func (a *App) root() *App {
	if a.site != nil {
		return a.site
	}
	return a
}

// Tenant returns the host of a tenant. The error of one that is not there, or that is
// disabled, is [host.ErrNotServed].
func (a *App) Tenant(ctx context.Context, name string) (*App, error) {
	if name == a.Config.Tenant {
		return a, nil
	}
	if a.site != nil {
		return a.site.Tenant(ctx, name)
	}
	o := &a.others
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := a.look(ctx); err != nil {
		return nil, err
	}
	if t := o.open[name]; t != nil {
		return t, nil
	}
	for _, there := range o.served {
		if there != name {
			continue
		}
		if r := o.failed[name]; time.Now().Before(r.until) {
			return nil, r.err
		}
		t, err := a.openTenant(context.WithoutCancel(ctx), name)
		if err != nil {
			a.log.Error("a tenant cannot be served", "tenant", name, "cause", err.Error())
			err = &plugin.Error{Code: plugin.CodeUnavailable, Message: "the tenant cannot be served now; the log of the host says why", Err: err}
			o.failed[name] = refusal{err, time.Now().Add(refusedFor)}
			return nil, err
		}
		o.open[name] = t
		return t, nil
	}
	return nil, host.ErrNotServed
}

// look learns which tenants are to be served, where that was not known just before, and ends
// those that are not any more. The caller holds the lock.
func (a *App) look(ctx context.Context) error {
	o := &a.others
	if time.Since(o.looked) < believedFor {
		return nil
	}
	rows, err := a.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	if o.open == nil {
		o.open, o.failed = map[string]*App{}, map[string]refusal{}
	}
	o.served = o.served[:0:0]
	there := map[string]bool{}
	for _, row := range rows {
		if row.DisabledAt.IsZero() && row.Name != a.Config.Tenant {
			o.served = append(o.served, row.Name)
			there[row.Name] = true
		}
	}
	for name, t := range o.open {
		if there[name] {
			continue
		}
		delete(o.open, name)
		o.ending.Go(func() { // what is under way ends as it does when a host is closed
			if err := t.Close(); err != nil {
				a.log.Error("a tenant did not end as it should", "tenant", name, "cause", err.Error())
			}
		})
	}
	o.looked = time.Now()
	return nil
}

// served returns the names of the other tenants that are served.
func (a *App) served(ctx context.Context) ([]string, error) {
	a.others.mu.Lock()
	defer a.others.mu.Unlock()
	err := a.look(ctx)
	return a.others.served, err
}

// Tenants returns the hosts of all tenants that are served, the site's own first. One that
// cannot be opened is left out, and the log says why.
func (a *App) Tenants(ctx context.Context) ([]*App, error) {
	names, err := a.served(ctx)
	all := []*App{a}
	for _, name := range names {
		if t, err := a.Tenant(ctx, name); err == nil {
			all = append(all, t)
		}
	}
	return all, err
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
	if t.Config, t.ConfigPath, err = setup.TenantConfig(a.Home, name, a.Config); err != nil {
		return nil, err
	}
	t.own = a.guarded(a.others.divide(name))
	t.Store = t.own
	t.guard = &host.Guard{Tenant: name, Owner: t.Config.Principal, Names: host.Names(t.Config), SignInAge: time.Duration(t.Config.Server.SignInAge), Store: t.own, Divided: true}
	if t.Principal, err = t.guard.Member(t.Config.Principal); err != nil {
		return nil, err
	}
	t.Reference = reference.Open(t.dir("tenants", name, "reference"))
	if err := t.openKept(ctx); err != nil {
		return nil, err
	}
	return t, t.openNouns(ctx, a.options)
}

// asTenant returns the host of the tenant that a command line is for, which closes that of
// the site with it.
func (a *App) asTenant(ctx context.Context) (*App, error) {
	t, err := a.Tenant(ctx, a.options.Tenant)
	if host.IsNotServed(err) {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no tenant %.63q that is served; 'mortise tenants list' shows those there are", a.options.Tenant)
	}
	if err != nil {
		return nil, err
	}
	if t.Principal, err = t.guard.Member(cmp.Or(a.options.As, t.Config.Principal)); err != nil {
		return nil, err
	}
	t.guard.Self, t.outer = t.Config.Principal, true
	t.closers = append([]closer{{"site", a.Close}}, t.closers...)
	return t, nil
}

// endTenants closes the hosts of all tenants.
func (a *App) endTenants() error {
	o := &a.others
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, t := range o.open {
		if !t.outer {
			errs = append(errs, t.Close())
		}
	}
	o.open, o.served, o.looked = nil, nil, time.Now().Add(24*time.Hour) // no other is opened
	o.ending.Wait()
	return errors.Join(errs...)
}

// checkPackage makes sure that the files of a package are those that were registered. One
// that has changed is held for every tenant that has it.
func (a *App) checkPackage(ctx context.Context, pkg plugin.Package) error {
	a.others.mu.Lock()
	all := []*App{a}
	for _, t := range a.others.open {
		all = append(all, t)
	}
	a.others.mu.Unlock()
	holders := slices.DeleteFunc(all, func(t *App) bool { return t.Registry == nil || !t.Registry.Has(pkg.Digest) })
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

// ownStore is what the site's own tenant has of the store. It is of the node too.
type ownStore struct {
	store.Store
	site store.Store
}

// Recover implements [store.Store].
func (s ownStore) Recover(ctx context.Context, fn func(store.Tx, store.NodeRow) error) (int, error) {
	return s.site.Recover(ctx, fn)
}

// WriteLast implements [store.Store].
func (s ownStore) WriteLast(ctx context.Context, fn func(store.Tx) error) error {
	return s.site.WriteLast(ctx, fn)
}

// Held says what a store with a lease says of it.
func (s ownStore) Held() error {
	if st, leased := s.site.(interface{ Held() error }); leased {
		return st.Held()
	}
	return nil
}

// A shared sweeper finds what is due in any tenant, and has the tenant's own host do it.
type shared struct {
	worker.Sweeper // of the site's own tenant, which finds
	app            *App
	of             func(*App) worker.Sweeper
}

// mostPassed bounds how many items of tenants that are not served are passed over.
const mostPassed = 10_000

// Due implements [worker.Sweeper]. What is of a tenant that is not served stays where it is,
// and keeps nothing else from being found.
func (s shared) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	for ask := limit; ; ask *= 2 {
		all, err := s.Sweeper.Due(store.Everywhere(ctx), ask)
		if err != nil {
			return nil, err
		}
		var due []worker.Item
		for _, item := range all {
			if _, err := s.app.Tenant(ctx, item.Tenant); err == nil && len(due) < limit {
				due = append(due, item)
			}
		}
		if len(due) == limit || len(all) < ask || ask >= mostPassed {
			return due, nil
		}
	}
}

// Do implements [worker.Sweeper].
func (s shared) Do(ctx context.Context, item worker.Item) error {
	t, err := s.app.Tenant(ctx, item.Tenant)
	if host.IsNotServed(err) {
		return nil // it waits until the tenant is served again
	}
	if err != nil {
		return err
	}
	return s.of(t).Do(ctx, item)
}
