package process

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// janitor ends processes that have been unused for too long.
func (r *Runner) janitor() {
	ticker := time.NewTicker(max(min(r.opts.Idle, r.opts.SessionIdle)/4, 10*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-r.life.Done():
			return
		case now := <-ticker.C:
			r.mu.Lock()
			for k, g := range r.groups {
				if empty, served := g.sweep(now); empty {
					delete(r.groups, k)
					if served && g.keeps() {
						r.past.add(g.lineage())
					}
				}
			}
			r.mu.Unlock()
		}
	}
}

// Close fails the calls in flight, ends every process and returns when all
// have been reaped. Later calls are refused. It may be called again.
func (r *Runner) Close() error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	groups := slices.Collect(maps.Values(r.groups))
	r.mu.Unlock()
	if first {
		r.end()
		for _, g := range groups {
			g.close()
		}
	}
	r.work.Wait()
	if r.own {
		return r.sandbox.Close()
	}
	return nil
}

// isDead reports whether err says that the process is gone or must go.
func isDead(err error) bool {
	if err == nil { // as it mostly is: what errors.As is given is on the heap
		return false
	}
	var e *plugin.Error
	return errors.As(err, &e) && (e.Code == plugin.CodeCrashed || e.Code == plugin.CodeMalformedResponse)
}
