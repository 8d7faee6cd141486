package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// RetentionPlugin is what stands for the periods after which data is removed, where policy is
// asked who may apply them.
const RetentionPlugin = "mortise.retention"

// How much one transaction removes, and how often a host that stays looks for more. A batch
// holds up all other writers while it is made.
const (
	removeBatch    = 50
	retentionEvery = 10 * time.Minute
	sweepTime      = time.Minute // of one kind, before other work has its turn
)

// A RetentionState is what a period removes of one kind of data.
type RetentionState struct {
	Kind   string        `json:"kind"`
	Period time.Duration `json:"-"`                // 0 keeps all
	Days   float64       `json:"days"`             // the period; 0 keeps all
	Count  int64         `json:"count"`            // how many are older
	Bytes  int64         `json:"bytes"`            // of their contents
	Oldest time.Time     `json:"oldest,omitzero"`  // of them
	Done   int64         `json:"removed,omitzero"` // how many were removed, where the periods were applied
}

// sweptAt is when the periods were applied last.
type sweptAt struct {
	mu   sync.Mutex
	last time.Time
}

// Retention returns what the periods would remove now.
func (a Admin) Retention(ctx context.Context) ([]RetentionState, error) {
	if err := a.allow(ctx, RetentionPlugin, use{plugin.EntryRetentionRefused, "retention", "show", "see what is kept for how long"}); err != nil {
		return nil, err
	}
	return a.api.host.retention(ctx, a.g.Store.Now())
}

// ApplyRetention removes what the periods say, in small transactions, and returns how much of
// what that was. It takes the right to configure mortise.retention, and a recent sign-in.
func (a Admin) ApplyRetention(ctx context.Context) ([]RetentionState, error) {
	u := use{plugin.EntryRetentionRefused, "retention", "apply", "remove what periods say"}
	if err := a.allow(ctx, RetentionPlugin, u); err != nil {
		return nil, err
	}
	if err := a.g.recent(ctx, a.caller, u); err != nil {
		return nil, err
	}
	at := a.g.Store.Now().UTC()
	states, err := a.api.host.retention(ctx, at)
	if err != nil {
		return nil, err
	}
	for i := range states {
		s := &states[i]
		if s.Period == 0 {
			continue
		}
		if s.Done, err = a.api.host.remove(ctx, a.by, retained(s.Kind), s.Period, at); err != nil {
			return states, err
		}
	}
	return states, nil
}

func (h *Host) periods() map[string]time.Duration {
	if h.parts.Periods == nil {
		return nil
	}
	periods := h.parts.Periods()
	if h.parts.Guard.Divided {
		delete(periods, string(retainPackages)) // packages are the site's
	}
	return periods
}

func (h *Host) retention(ctx context.Context, at time.Time) ([]RetentionState, error) {
	periods, g := h.periods(), h.parts.Guard
	var all []RetentionState
	for _, kind := range retainedKinds {
		if kind == retainPackages && g.Divided {
			continue
		}
		s := RetentionState{Kind: string(kind), Period: periods[string(kind)]}
		s.Days = s.Period.Hours() / 24
		if s.Period > 0 {
			due, err := g.Store.Removable(ctx, kind, g.Tenant, at.Add(-s.Period))
			if err != nil {
				return nil, err
			}
			s.Count, s.Bytes, s.Oldest = due.Count, due.Bytes, due.Oldest
		}
		all = append(all, s)
	}
	return all, nil
}

// remove removes what is older than a period of one kind, batch by batch. Each batch is whole
// after a crash, and the entry that says how many there were comes with it.
func (h *Host) remove(ctx context.Context, by plugin.Principal, kind retained, period time.Duration, at time.Time) (sum int64, err error) {
	g := h.parts.Guard
	if kind == retainPackages {
		ctx = everywhere(ctx) // plugins of any tenant may need them
	}
	of := removal{Tenant: g.Tenant, Before: at.Add(-period), At: at, Limit: removeBatch}
	for ctx.Err() == nil {
		var got removed
		err := g.Store.Write(ctx, func(tx Tx) (err error) {
			if got, err = tx.Remove(kind, of); err != nil || got.Count == 0 {
				return err
			}
			return g.Note(tx, by, plugin.EntryRetentionApplied, string(kind), map[string]any{"kind": string(kind), "count": got.Count, "bytes": got.Bytes, "before": of.Before})
		})
		if err != nil || got.Count == 0 {
			return sum, err
		}
		sum += got.Count
		if err := h.dispose(ctx, got.Sessions, got.Hashes); err != nil {
			return sum, err
		}
	}
	return sum, context.Cause(ctx)
}

// dispose ends the processes of sessions that are gone, and deletes their views and bytes.
func (h *Host) dispose(ctx context.Context, sessions, hashes []string) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	for _, id := range sessions {
		errs = append(errs, h.parts.EndSession(ctx, h.parts.Guard.Tenant, id, true))
	}
	return errors.Join(append(errs, h.parts.Sessions.Dispose(ctx, h.parts.Guard.Tenant, sessions, hashes))...)
}

// expired removes what models were asked and answered, once its time is over.
func (h *Host) expired(ctx context.Context) error {
	g := h.parts.Guard
	for ctx.Err() == nil {
		var got removed
		err := g.Store.Write(ctx, func(tx Tx) (err error) {
			got, err = tx.RemoveExpired(g.Tenant, g.Store.Now(), removeBatch)
			return err
		})
		if err != nil || got.Count == 0 {
			return err
		}
	}
	return nil
}

// Removals returns what is to be removed now by a host that stays: erasures that are not done,
// and, now and then, the kinds of data that have a period.
func (h *Host) Removals(ctx context.Context) (ids []string, err error) {
	if err := h.reapply(ctx); err != nil {
		return nil, err
	}
	open, err := h.parts.Guard.Store.Erasures(ctx, h.parts.Guard.Tenant, true)
	for i := range open {
		ids = append(ids, erasurePrefix+open[i].ID)
	}
	h.swept.mu.Lock()
	defer h.swept.mu.Unlock()
	if time.Since(h.swept.last) < retentionEvery {
		return ids, err
	}
	h.swept.last = time.Now()
	ids = append(ids, expiredBodies)
	for _, kind := range retainedKinds {
		if h.periods()[string(kind)] > 0 {
			ids = append(ids, string(kind))
		}
	}
	return ids, err
}

// What Removals returns besides kinds.
const (
	erasurePrefix = "erasure:"
	expiredBodies = "expired"
)
