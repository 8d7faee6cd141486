package worker_test

import (
	"context"
	"fmt"
	"math/bits"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store/job"
)

// A looked is a board that counts how often it was asked what is due.
type looked struct {
	*board
	looks atomic.Int64
}

func (l *looked) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	l.looks.Add(1)
	return l.board.Due(ctx, limit)
}

// TestNoKindOfWorkStopsTheOthers: every set of kinds is full of work that does not
// end, with more of it waiting, and what is due of all others is done, whether a sweep
// or a wake-up tells of it. The kinds that are full are looked through all the same:
// what expires there does.
func TestNoKindOfWorkStopsTheOthers(t *testing.T) {
	t.Parallel()
	kinds := []string{job.Call, job.Plan, job.Conversation, job.Webhook, job.Agent, "schedule", "idle"} // those of a host
	for set := range 1 << len(kinds) {
		if bits.OnesCount(uint(set)) < len(kinds)-1 && set != 1 {
			continue // all, each time all but one, and calls alone will do
		}
		t.Run(fmt.Sprintf("%07b", set), func(t *testing.T) {
			t.Parallel()
			const workers = 2
			release := make(chan struct{})
			defer close(release)
			boards, sweepers := make([]*looked, len(kinds)), make([]worker.Sweeper, len(kinds))
			for n, kind := range kinds {
				b := &looked{board: &board{kind: kind}}
				if set&(1<<n) != 0 {
					b.act = func(ctx context.Context, _ string) error {
						select {
						case <-release:
						case <-ctx.Done():
						}
						return nil
					}
					for i := range 12 * workers {
						b.put(fmt.Sprint("long", i))
					}
				}
				boards[n], sweepers[n] = b, b
			}
			r := start(t, worker.Options{Sweepers: sweepers, Workers: workers})
			full := func(b *looked) bool {
				b.mu.Lock()
				defer b.mu.Unlock()
				return b.now == workers
			}
			for n, b := range boards {
				if set&(1<<n) != 0 {
					testwait.Until(t, "the pool is full", func() bool { return full(b) })
					for i := range 2*workers + 1 { // more than the queue hands out at a time
						if err := r.queue.Wake(t.Context(), b.kind, "acme", fmt.Sprint("woken", i), time.Time{}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			for n, b := range boards {
				if set&(1<<n) != 0 {
					before := b.looks.Load()
					testwait.Until(t, b.kind+" is looked through", func() bool { return b.looks.Load() > before+1 })
					if !full(b) || b.most > workers {
						t.Errorf("%d of %s at a time", b.most, b.kind)
					}
					continue
				}
				b.put("swept")
				if err := r.queue.Wake(t.Context(), b.kind, "acme", "told", time.Time{}); err != nil {
					t.Fatal(err)
				}
				testwait.Until(t, b.kind+" goes on", func() bool { return b.count("swept") > 0 && b.count("told") > 0 })
			}
		})
	}
}
