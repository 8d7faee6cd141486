package registry

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// lookEvery is how often at most the files of one live release are looked at.
const lookEvery = 200 * time.Millisecond

// A live watches over a release that may change under us: a linked directory, a program
// that the configuration names, a bundled plugin whose code has not been asked yet.
// There is no background goroutine: Resolve looks, at most every lookEvery.
type live struct {
	// look returns the release that should take the place of the one there
	// is, nil for the same. Only one look runs at a time.
	look func(ctx context.Context, now *version) (*release, error)
	once bool // a look that succeeded is the last

	turn    chan struct{}
	looked  atomic.Int64 // when last, in nanoseconds since 1970; 0 for never
	done    atomic.Bool
	trouble atomic.Pointer[error] // why it cannot be used; nil if it can
	stamp   stamp                 // of the files at the last look that succeeded; guarded by the turn
}

func newLive() *live { return &live{turn: make(chan struct{}, 1)} }

// recent reports whether no look is due.
func (l *live) recent(now time.Time) bool {
	if l.done.Load() {
		return true
	}
	age := now.UnixNano() - l.looked.Load()
	return age >= 0 && age < int64(lookEvery)
}

// well reports whether no look is due and the last one succeeded.
func (l *live) well(now time.Time) bool { return l.recent(now) && l.trouble.Load() == nil }

// err returns why the release cannot be used.
func (l *live) err() error {
	if trouble := l.trouble.Load(); trouble != nil {
		return *trouble
	}
	return nil
}

// freshen looks at a live version if that is due. What it finds wrong is kept
// in the live; only the caller's own giving up is returned.
func (r *Registry) freshen(ctx context.Context, v *version) error {
	l := v.live
	if l == nil || l.recent(r.now()) {
		return nil
	}
	if ctx.Err() != nil { // select would toss a coin
		return context.Cause(ctx)
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.recent(r.now()) {
		return nil // someone else looked while we waited
	}
	current := r.index.Load().holding(l)
	if current == nil {
		return nil // deleted meanwhile
	}
	next, err := l.look(ctx, current)
	if err == nil && next != nil {
		err = r.supersede(ctx, current, next)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		l.trouble.Store(&err)
	} else {
		l.trouble.Store(nil)
		l.done.Store(l.once)
	}
	l.looked.Store(r.now().UnixNano())
	return nil
}

// holding returns the version that l watches over, nil if there is none.
func (ix *index) holding(l *live) *version {
	for v := range ix.all {
		if v.live == l {
			return v
		}
	}
	return nil
}

// supersede puts a release in the place of the one that was looked at, unless
// that is gone. It keeps its state.
func (r *Registry) supersede(ctx context.Context, looked *version, next *release) error {
	if next.record.Source == SourceConfig {
		return r.change(ctx, func() error {
			r.index.Store(r.index.Load().with(&version{release: next, state: Active}))
			return nil
		})
	}
	return r.change(ctx, func() error {
		current := r.index.Load().holding(looked.live)
		if current == nil {
			return nil
		}
		record := next.record
		record.State = current.state
		renumbered := current.record.Version != record.Version
		if other := r.index.Load().version(record.Name, record.Version); renumbered && other != nil && !other.record.Dev {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s is installed already: give the linked one another version, or delete the installed one first", label(record.Name, record.Version))
		}
		if _, err := r.put(ctx, record, looked.live, plugin.EntryPluginRegistered); err != nil || !renumbered {
			return err
		}
		if err := r.catalog.Delete(ctx, current.record); err != nil {
			return fmt.Errorf("deleting %s: %w", label(current.record.Name, current.record.Version), err)
		}
		r.index.Store(r.index.Load().without(current))
		return nil
	})
}
