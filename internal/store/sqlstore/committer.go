package sqlstore

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/store"
)

const (
	maxQueue = 256 // callers waiting before Write blocks
	maxBatch = 256 // callers in one transaction
	maxYield = 8   // times the committer lets others run before it commits fewer than last time
)

// A request is one caller of Write.
type request struct {
	fn    func(store.Tx) error // nil only with last
	last  bool                 // the node leaves the books
	state atomic.Int32         // waiting, then taken or withdrawn
	done  chan error           // buffered: the committer never waits for a caller
}

const (
	waiting int32 = iota
	taken
	withdrawn
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

	// Of run alone:
	failed     error // why nothing is written any more
	registered bool  // the node is on the books
	entered    bool  // Enter was called and Leave was not
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
func (c *committer) do(ctx context.Context, r *request) error {
	r.done = make(chan error, 1)
	if err := c.send(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, withdrawn) {
			return context.Cause(ctx)
		}
		return <-r.done
	}
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
	last := &request{last: true, done: make(chan error, 1)}
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
		if r.state.CompareAndSwap(waiting, taken) {
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
	for len(batch) > 0 {
		if c.failed != nil {
			tell(batch, c.failed)
			return
		}
		bad, err := c.attempt(batch)
		if bad < 0 {
			tell(batch, err)
			return
		}
		batch[bad].done <- err
		batch = slices.Delete(batch, bad, bad+1)
	}
}

func tell(batch []*request, err error) {
	for _, r := range batch {
		r.done <- err
	}
}

// attempt runs the batch in one transaction. A closure that fails ends it with
// that closure's place; bad is -1 if all shared the outcome err.
func (c *committer) attempt(batch []*request) (bad int, err error) {
	e := c.writer.engine
	leaving := batch[len(batch)-1].last
	if leaving && !c.registered && !slices.ContainsFunc(batch, func(r *request) bool { return r.fn != nil }) {
		return -1, nil
	}
	register := !leaving && !c.registered
	if register && !c.entered {
		if err := e.Enter(); err != nil {
			return -1, fmt.Errorf("registering this process: %w", err)
		}
		c.entered = true
	}

	tx, err := c.writer.begin()
	if err != nil {
		return -1, err
	}
	if register {
		if err := tx.InsertNode(e.Node); err != nil {
			return -1, c.abort(tx, err)
		}
	}
	for i, r := range batch {
		if r.fn == nil {
			continue
		}
		if err := tx.do(r.fn); err != nil {
			return i, c.abort(tx, err)
		}
	}
	left := false
	if leaving && c.registered {
		if left, err = tx.leave(e.Node.ID); err != nil {
			return -1, c.abort(tx, err)
		}
	}
	if err := tx.link(); err != nil {
		return -1, c.abort(tx, err)
	}
	if err := c.writer.commit(); err != nil {
		c.failed = fmt.Errorf("%w: %w", store.ErrFailed, err)
		c.writer.discard()
		return -1, c.failed
	}

	if len(tx.entries) > 0 {
		c.appended.Store(true)
	}
	c.registered = c.registered && !left || register
	if left {
		c.leave(true)
	}
	return -1, nil
}

// abort rolls back and returns err, having drawn the consequences of it.
func (c *committer) abort(tx *tx, err error) error {
	if fatal := c.writer.engine.Fatal; fatal != nil && (fatal(err) || fatal(tx.err)) {
		c.failed = fmt.Errorf("%w: %w", store.ErrFailed, err)
		err = c.failed
	}
	c.writer.rollback()
	return err
}

func (c *committer) leave(clean bool) {
	if c.entered {
		c.writer.engine.Leave(clean)
		c.entered = false
	}
}

// do runs one closure. A panic is its error: others wait for this goroutine.
func (t *tx) do(fn func(store.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	// A closure may have passed over an error, and the transaction with it.
	return t.err
}
