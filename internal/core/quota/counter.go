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

	dropped bool // another counter has the key now
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
	if c.dropped {
		return false, errDropped
	}
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

// give takes back one call of a window that is not over. A counter that was dropped takes none
// back: the call stays counted.
func (c *counter) give(period string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.period == period && !c.dropped {
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

// maxCounters is how many windows of subjects are counted in memory at a time. What the one that
// was used least recently has charged in advance goes back to the store.
const maxCounters = 10_000

// counter returns the counter of a key. dropped is the one that had to make room for it, nil if
// there was room.
func (q *Quotas) counter(key counterKey) (c, dropped *counter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.counters[key]; e != nil {
		q.recent.MoveToFront(e)
		return e.Value.(*counter), nil
	}
	if len(q.counters) >= maxCounters {
		dropped = q.recent.Remove(q.recent.Back()).(*counter)
		delete(q.counters, dropped.key)
	}
	c = &counter{key: key}
	q.counters[key] = q.recent.PushFront(c)
	return c, dropped
}

// take uses one call of a window of a key, and reports whether there was one, and the counter
// that has it.
func (q *Quotas) take(ctx context.Context, key counterKey, w window) (c *counter, ok bool, err error) {
	for {
		c, dropped := q.counter(key)
		if dropped != nil {
			if err := dropped.drop(context.WithoutCancel(ctx), q.opts.Counts); err != nil {
				return nil, false, err
			}
		}
		ok, err := c.take(ctx, q.opts.Counts, w)
		if errors.Is(err, errDropped) {
			continue
		}
		return c, ok, err
	}
}

// held is what is charged for a window of a key and not used.
func (q *Quotas) held(key counterKey, period string) int64 {
	q.mu.Lock()
	e := q.counters[key]
	q.mu.Unlock()
	if e == nil {
		return 0
	}
	return e.Value.(*counter).held(period)
}

// Close gives back to the store what was charged and not used. Calls that are counted after
// it are charged again.
func (q *Quotas) Close() error {
	ctx := context.Background()
	q.mu.Lock()
	var all []*counter
	for _, e := range q.counters {
		all = append(all, e.Value.(*counter))
	}
	q.mu.Unlock()
	var errs []error
	for _, c := range all {
		c.mu.Lock()
		errs = append(errs, c.giveBack(ctx, q.opts.Counts))
		c.mu.Unlock()
	}
	return errors.Join(errs...)
}

// giveBack gives back to the store what is charged and not used. The caller holds the lock.
func (c *counter) giveBack(ctx context.Context, counts Counts) error {
	if c.left == 0 {
		return nil
	}
	_, _, err := counts.Add(ctx, c.key.tenant, c.key.subject, c.period, -c.left, math.MaxInt64)
	c.left = 0
	return err
}

// errDropped is why a counter takes nothing any more: another has its key now.
var errDropped = errors.New("the counter was dropped")

// drop ends a counter.
func (c *counter) drop(ctx context.Context, counts Counts) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = true
	return c.giveBack(ctx, counts)
}

// forget deletes the counts of days and months that are over, a few at a time: all but those of
// the last two of each, for clocks differ.
func (q *Quotas) forget(ctx context.Context, tenant string, d *date) error {
	q.mu.Lock()
	done := q.forgot[tenant] == d.day
	q.mu.Unlock()
	if done {
		return nil
	}
	day, month := d.begins.AddDate(0, 0, -1).Format(dayForm), d.begins.AddDate(0, 0, 1-d.begins.Day()).AddDate(0, -1, 0).Format(monthForm)
	more, err := q.opts.Counts.Forget(ctx, tenant, subjects, day, month)
	if err != nil || more {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forgot[tenant] = d.day
	return nil
}

// subjects is how the subjects of all counts begin.
const subjects = "calls"

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
