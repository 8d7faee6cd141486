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

	// stale is the maximum age of the index in use. A caller waits for a poll in progress
	// only if the index is older.
	stale = 900 * time.Millisecond
)

// A seen remembers which version of the catalog the index was made of, and when that
// was last known to be the newest. There is no background goroutine: Resolve polls the
// catalog when that is due.
type seen struct {
	turn    chan struct{} // holds a token during a poll
	at      atomic.Int64  // in nanoseconds since 1970; 0 for never
	version int64         // guarded by the turn
}

// keepUp takes up what other processes changed in the catalog, if it is time.
func (r *Registry) keepUp(ctx context.Context, now time.Time) error {
	last := r.seen.at.Load()
	age := time.Duration(now.UnixNano() - last)
	switch {
	case age < pollEvery && age > -stale: // slightly negative: a concurrent poll was faster
		return nil
	case age > 0 && age < stale:
		select {
		case r.seen.turn <- struct{}{}:
		default:
			return nil // a poll is in progress
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
		return nil // another caller polled while we waited
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
