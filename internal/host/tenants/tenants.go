// Package tenants opens the hosts of the tenants of a site as they are needed, and ends
// those whose tenants are disabled.
package tenants

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of how old what is known may be.
const (
	believed = time.Second // which tenants there are
	refused  = time.Second // why one could not be opened
)

// A Set has the hosts of all tenants but the site's own. It is safe for concurrent use.
type Set[T interface{ Close() error }] struct {
	Own  string                                                       // the name of the site's own tenant
	List func(ctx context.Context) ([]host.TenantRow, error)          // the tenants that were created
	Open func(ctx context.Context, name string) (opened T, err error) // the host of one
	Log  *slog.Logger

	mu     sync.Mutex // held while one is opened
	open   map[string]T
	failed map[string]failure
	looked time.Time
	served []string
	ended  bool
	ending sync.WaitGroup
}

type failure struct {
	err   error
	until time.Time
}

// Host returns the host of a tenant, which is opened where it is not yet. The error of one
// that is not there, or that is disabled, is [host.ErrNotServed]; of one that cannot be
// opened, unavailable.
func (s *Set[T]) Host(ctx context.Context, name string) (none T, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.look(ctx); err != nil {
		return none, err
	}
	if t, there := s.open[name]; there {
		return t, nil
	}
	if !slices.Contains(s.served, name) {
		return none, host.ErrNotServed
	}
	if f := s.failed[name]; time.Now().Before(f.until) {
		return none, f.err
	}
	t, err := s.Open(context.WithoutCancel(ctx), name)
	if err != nil {
		s.Log.Error("a tenant cannot be served", "tenant", name, "cause", err.Error())
		err = &plugin.Error{Code: plugin.CodeUnavailable, Message: "the tenant cannot be served now; the log of the host says why", Err: err}
		s.failed[name] = failure{err, time.Now().Add(refused)}
		return none, err
	}
	s.open[name] = t
	return t, nil
}

// look learns which tenants are to be served, where that was not known just before, and ends
// those that are not any more. The caller holds the lock.
func (s *Set[T]) look(ctx context.Context) error {
	if s.ended || time.Since(s.looked) < believed {
		return nil
	}
	rows, err := s.List(ctx)
	if err != nil {
		return err
	}
	if s.open == nil {
		s.open, s.failed = map[string]T{}, map[string]failure{}
	}
	s.served = nil
	for _, row := range rows {
		if row.DisabledAt.IsZero() && row.Name != s.Own {
			s.served = append(s.served, row.Name)
		}
	}
	for name, t := range s.open {
		if slices.Contains(s.served, name) {
			continue
		}
		delete(s.open, name)
		s.ending.Go(func() { // what is under way ends as it does when a host is closed
			if err := t.Close(); err != nil {
				s.Log.Error("a tenant did not end as it should", "tenant", name, "cause", err.Error())
			}
		})
	}
	s.looked = time.Now()
	return nil
}

// Served returns the names of the tenants that are served.
func (s *Set[T]) Served(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.look(ctx)
	return s.served, err
}

// All returns the hosts of all tenants that are served. One that cannot be opened is left
// out; the log says why.
func (s *Set[T]) All(ctx context.Context) (all []T, err error) {
	names, err := s.Served(ctx)
	for _, name := range names {
		if t, err := s.Host(ctx, name); err == nil {
			all = append(all, t)
		}
	}
	return all, err
}

// Due returns what finds work of a kind in each tenant, the site's own, which is own, among
// them. find returns the name of a tenant, and the ids of what is due there.
func (s *Set[T]) Due(kind string, own T, find func(ctx context.Context, t T, limit int) (tenant string, ids []string, err error)) func(context.Context, int) ([]worker.Item, error) {
	return func(ctx context.Context, limit int) (all []worker.Item, err error) {
		others, err := s.All(ctx)
		for _, t := range append(others, own) {
			tenant, ids, failed := find(ctx, t, limit)
			items, failed := worker.Items(kind, ids, failed, func(id *string) (string, string) { return tenant, *id })
			all, err = append(all, items...), errors.Join(err, failed)
		}
		return all, err
	}
}

// Now returns the hosts that are open at the moment.
func (s *Set[T]) Now() (all []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.open {
		all = append(all, t)
	}
	return all
}

// Forget has the next question look again which tenants there are.
func (s *Set[T]) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = time.Time{}
}

// Close closes all hosts but those that keep says of; no other is opened after.
func (s *Set[T]) Close(keep func(T) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, t := range s.open {
		if !keep(t) {
			errs = append(errs, t.Close())
		}
	}
	s.served, s.ended = nil, true
	s.ending.Wait()
	return errors.Join(errs...)
}
