package registry

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// pollEvery is how often at most the catalog is asked whether another
	// process has changed it.
	pollEvery = 500 * time.Millisecond

	// stale is how old at most what is known may be. A caller waits for whoever
	// asks at the moment only if it is older.
	stale = 900 * time.Millisecond
)

// A seen remembers which version of the catalog the index was made of, and when
// that was last known to be the newest. Nobody asks in the background: whoever
// resolves does, when it is due.
type seen struct {
	turn    chan struct{} // holds a token while somebody asks
	at      atomic.Int64  // in nanoseconds since 1970; 0 for never
	version int64         // whoever has the turn
}

// keepUp takes up what other processes changed in the catalog, if it is time.
func (r *Registry) keepUp(ctx context.Context, now time.Time) error {
	last := r.seen.at.Load()
	age := time.Duration(now.UnixNano() - last)
	switch {
	case age < pollEvery && age > -stale: // a little less than nothing: somebody was faster
		return nil
	case age > 0 && age < stale:
		select {
		case r.seen.turn <- struct{}{}:
		default:
			return nil // somebody is asking
		}
	default: // the clock may have gone back too
		if ctx.Err() != nil { // select would toss a coin
			return context.Cause(ctx)
		}
		select {
		case r.seen.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-r.seen.turn }()
	if r.seen.at.Load() != last {
		return nil // somebody asked while we waited
	}
	found, err := r.catalog.Version(ctx)
	if err != nil {
		return fmt.Errorf("asking the catalog of plugins for changes: %w", err)
	}
	if found != r.seen.version || r.seen.at.Load() == 0 {
		if err := r.Refresh(ctx); err != nil {
			return err
		}
	}
	r.seen.version = found
	r.seen.at.Store(now.UnixNano())
	return nil
}
