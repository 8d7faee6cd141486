package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const (
	maxQueue = 256 // callers waiting before Write blocks
	maxBatch = 256 // callers in one transaction
	maxYield = 8   // times the committer lets others run before it commits fewer than last time

	maxTries = 10                     // transactions for one batch, where others or the server are in the way
	maxLost  = 20                     // where their connections are lost: ten in a moment are what a busy machine has
	maxPause = 500 * time.Millisecond // between two of them
)

// A committer turns the closures of many callers into few transactions. One
// goroutine belongs to it: it alone uses the writing connection, and runs the
// closures.
//
//	do    hands a request to it and waits
//	run   takes all that are waiting, commits them, tells them, and starts over
type committer struct {
	writer *writer
	queue  chan *request
	ended  chan struct{}

	mu      sync.RWMutex // held for reading while sending to queue, for writing to close it
	stopped bool

	appended atomic.Bool
	watchers watchers
	closing  atomic.Pointer[time.Time] // when to stop waiting for a server, once the store is being closed
	away     atomic.Pointer[error]     // why there is no connection, while a server is waited for

	// Of run alone:
	failed     error // why nothing is written any more
	registered bool  // the node is on the books
	entered    bool  // Enter was called and Leave was not
	last       Place // where the last transaction left its chain
	previous   int   // how many the last batch had
}

func newCommitter(e *Engine) *committer {
	c := &committer{
		writer: &writer{engine: e},
		queue:  make(chan *request, maxQueue),
		ended:  make(chan struct{}),
	}
	go c.run()
	return c
}

// do hands r to the committer and waits for its outcome.
func (c *committer) do(r *request) error {
	r.done = make(chan error, 1)
	err := c.send(r.ctx, r)
	if err == nil {
		err = r.outcome()
	}
	if away := c.away.Load(); away != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w; %w", store.ErrAway, *away, err) // it is why there was no time
	}
	return err
}

func (c *committer) send(ctx context.Context, r *request) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.stopped {
		return store.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case c.queue <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop lets the committer finish what was accepted and take the node off the
// books, and waits for it to end.
func (c *committer) stop() error {
	last := &request{ctx: context.Background(), last: true, done: make(chan error, 1)}
	if s := c.writer.engine.Server; s != nil {
		// Before the lock: callers may hold it while they wait for room.
		until := time.Now().Add(s.Grace)
		c.closing.CompareAndSwap(nil, &until)
	}
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		<-c.ended
		return nil
	}
	c.stopped = true
	c.queue <- last // room will come: the committer takes without our lock
	close(c.queue)
	c.mu.Unlock()
	<-c.ended
	return <-last.done
}

func (c *committer) run() {
	defer close(c.ended)
	defer c.writer.discard()
	// A node that is not on the books has no use for its lock.
	defer func() { c.leave(!c.registered) }()
	for {
		batch := c.gather()
		if batch == nil {
			return
		}
		c.settle(batch)
	}
}

// gather waits for a request and returns it with all others that are waiting;
// nil when the queue is closed and empty.
//
// Callers whose batch was just acknowledged are about to come back. Committing
// before they do would give every other transaction to the one that was
// quickest, so the committer yields a few times until as many are there as
// last time. A single caller is never made to wait.
func (c *committer) gather() []*request {
	var batch []*request
	take := func(r *request) {
		if r.take() {
			batch = append(batch, r)
		}
	}
	for len(batch) == 0 {
		r, open := <-c.queue
		if !open {
			return nil
		}
		take(r)
	}
	for yields := 0; len(batch) < maxBatch; {
		select {
		case r, open := <-c.queue:
			if open {
				take(r)
				continue
			}
			yields = maxYield
		default:
		}
		if len(batch) >= c.previous || yields >= maxYield {
			break
		}
		yields++
		runtime.Gosched()
	}
	c.previous = len(batch)
	return batch
}

// settle commits the batch, leaving out closures that fail, and tells everyone
// what became of them.
func (c *committer) settle(batch []*request) {
	for tries := 1; len(batch) > 0; {
		if c.failed != nil {
			tell(batch, c.failed)
			return
		}
		if batch = c.connected(batch); len(batch) == 0 {
			return
		}
		bad, fault, err := c.attempt(batch)
		switch {
		case fault == Full:
			// What has happened is recorded on the reserve; what has not is refused.
			batch = refuse(batch, fmt.Errorf("%w: %w", store.ErrFull, err))
			if room := c.writer.engine.Room; room == nil || !room() {
				tell(batch, fmt.Errorf("%w: %w", store.ErrFull, err))
				return
			}
		case bad >= 0:
			batch[bad].done <- err
			batch = slices.Delete(batch, bad, bad+1)
		case errors.Is(err, store.ErrLapsed) && len(batch) == 1 && batch[0].last && batch[0].fn == nil:
			tell(batch, nil) // it has nothing more to write, and others close the books of what they took for dead
			return
		case fault == Refused, fault == Clashed && tries >= maxTries, tries == maxLost, c.over():
			tell(batch, err)
			return
		default:
			time.Sleep(pause(tries))
			tries++
		}
	}
}

// refuse tells those that may not use the reserve, and returns the others.
func refuse(batch []*request, err error) []*request {
	return slices.DeleteFunc(batch, func(r *request) bool {
		if r.last || store.IsSettling(r.ctx) {
			return false
		}
		r.done <- err
		return true
	})
}

// connected returns the batch once there is a connection to write on. A server
// that is away is waited for, by each caller for as long as it likes.
func (c *committer) connected(batch []*request) []*request {
	if c.writer.conn != nil {
		return batch
	}
	for tries := 1; ; tries++ {
		batch = park(batch)
		err := c.writer.connect()
		wait := c.writer.engine.fault(err) == Lost && !c.over()
		c.away.Store(nil)
		if wait {
			c.away.Store(&err)
			time.Sleep(pause(tries))
		}
		batch = retake(batch)
		if err == nil || len(batch) == 0 {
			return batch
		}
		if !wait {
			tell(batch, err)
			return nil
		}
	}
}

// over reports whether the store is being closed and has waited long enough.
func (c *committer) over() bool {
	until := c.closing.Load()
	return until != nil && time.Now().After(*until)
}

// pause is how long to wait after some tries.
func pause(tries int) time.Duration {
	most := min(time.Millisecond<<min(tries, 10), maxPause)
	return most/2 + rand.N(most/2)
}
