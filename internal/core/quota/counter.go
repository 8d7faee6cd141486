package quota

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

type counterKey struct{ tenant, subject, window string }

// A counter hands out the calls of one window. It charges them to the store in blocks: the
// more are left, the larger, and one at a time near the bound. So a bound of n costs far
// fewer than n writes, is never passed by all nodes together, and a node that is killed
// leaves at most 1/64 of what was left unused.
type counter struct {
	key counterKey

	wanted atomic.Int64 // calls that wait for the counter or have it

	mu     sync.Mutex // guards the rest; held over the write of a block, which is for all who wait
	period string     // the window that the rest is of
	total  int64      // as the store said last
	left   int64      // charged and not used
}

// The most calls that are charged at a time, and the share of what is left that is: so
// many nodes may hold one such block each without refusing calls that there is room for.
const (
	maxBlock = 1024
	share    = 64
)

// take uses one call of a window, and reports whether there was one.
func (c *counter) take(ctx context.Context, counts Counts, w window) (bool, error) {
	c.wanted.Add(1)
	defer c.wanted.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.period != w.period { // what was left of the last window is of no use
		c.period, c.total, c.left = w.period, 0, 0
	}
	for c.left == 0 {
		n := max(1, min(maxBlock, max((w.limit-c.total)/share, min(c.wanted.Load(), w.limit-c.total))))
		total, ok, err := counts.Add(ctx, c.key.tenant, c.key.subject, w.period, n, w.limit)
		if err != nil {
			return false, err
		}
		c.total = total
		if ok {
			c.left = n
		} else if total >= w.limit {
			return false, nil
		}
	}
	c.left--
	return true, nil
}

// give takes back one call of a window that is not over.
func (c *counter) give(period string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.period == period {
		c.left++
	}
}

// held is what is charged for a window and not used.
func (c *counter) held(period string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.period != period {
		return 0
	}
	return c.left
}

func (q *Quotas) counter(key counterKey) *counter {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.counters[key]
	if c == nil {
		c = &counter{key: key}
		q.counters[key] = c
	}
	return c
}

// Close gives back to the store what was charged and not used. Calls that are counted after
// it are charged again.
func (q *Quotas) Close() error {
	ctx := context.Background()
	q.mu.Lock()
	all := slices.Collect(maps.Values(q.counters))
	q.mu.Unlock()
	var errs []error
	for _, c := range all {
		c.mu.Lock()
		if c.left > 0 {
			_, _, err := q.opts.Counts.Add(ctx, c.key.tenant, c.key.subject, c.period, -c.left, math.MaxInt64)
			errs = append(errs, err)
			c.left = 0
		}
		c.mu.Unlock()
	}
	return errors.Join(errs...)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
