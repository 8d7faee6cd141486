package ledger

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A behind is a write-behind buffer of ledger entries. Callers append to it; one
// goroutine writes the whole buffer in one transaction, a moment after the first entry
// arrived, or at once when a caller waits for it or half the room is taken.
type behind struct {
	st    Store
	limit int

	first  chan struct{} // there is something to write, in a moment
	urgent chan struct{} // write now
	quit   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	entries []plugin.Entry
	spare   []plugin.Entry // room of those written last, for the next ones
	waiters []chan<- error // told when entries are written
	room    chan struct{}  // closed when entries were taken
	writing bool           // entries were taken and are not yet written
	closed  bool
	err     error // why nothing is taken: for good, or until a write succeeds again
}

// again is how long after a write that failed it is tried again.
const again = time.Second

// closing is how many times a ledger that closes tries to write what is left.
const closing = 5

// final reports whether no later write to the store succeeds either. All else
// passes: a full disk, a database that is busy, a connection that was lost.
func final(err error) bool {
	for _, one := range []error{ErrStoreClosed, ErrFailed, errTampered, errReadOnly} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func newBehind(st Store, opts Options) *behind {
	b := &behind{
		st: st, limit: opts.Buffer,
		first: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		quit: make(chan struct{}), ended: make(chan struct{}),
		room: make(chan struct{}),
	}
	go b.run(opts.Flush)
	return b
}

// add appends e, once there is room for it.
func (b *behind) add(ctx context.Context, e plugin.Entry) error {
	return b.put(ctx, e, nil)
}

// addDurable appends e and waits until it is written.
func (b *behind) addDurable(ctx context.Context, e plugin.Entry) error {
	b.mu.Lock()
	idle := b.err == nil && !b.closed && !b.writing && len(b.entries) == 0
	b.mu.Unlock()
	if idle {
		// Nothing comes before e, so it need not queue here as well.
		return lapsing(func() error {
			return b.st.Write(ctx, func(tx Tx) error { tx.Append(e); return nil })
		})
	}
	done := make(chan error, 1)
	if err := b.put(ctx, e, done); err != nil {
		return err
	}
	return <-done
}

func (b *behind) put(ctx context.Context, e plugin.Entry, waiter chan<- error) error {
	for {
		b.mu.Lock()
		if err := b.refusal(); err != nil {
			b.mu.Unlock()
			return err
		}
		if n := len(b.entries); n < b.limit {
			b.entries = append(b.entries, e)
			if waiter != nil {
				b.waiters = append(b.waiters, waiter)
			}
			b.mu.Unlock()
			if waiter != nil || n+1 >= b.limit/2 {
				signal(b.urgent)
			} else if n == 0 {
				signal(b.first)
			}
			return nil
		}
		room := b.room
		b.mu.Unlock()
		signal(b.urgent)
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// flushed waits until everything put before is written.
func (b *behind) flushed(ctx context.Context) error {
	b.mu.Lock()
	if err := b.refusal(); err != nil {
		b.mu.Unlock()
		return err
	}
	if len(b.entries) == 0 && !b.writing {
		b.mu.Unlock()
		return nil
	}
	done := make(chan error, 1)
	b.waiters = append(b.waiters, done)
	b.mu.Unlock()
	signal(b.urgent)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *behind) refusal() error {
	switch {
	case b.err != nil:
		return b.err
	case b.closed:
		return ErrClosed
	}
	return nil
}

func (b *behind) run(flush time.Duration) {
	defer close(b.ended)
	timer := time.NewTimer(flush)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-b.first:
			timer.Reset(flush)
		case <-timer.C:
			b.write(context.Background(), b.st.Write)
		case <-b.urgent:
			timer.Stop()
			b.write(context.Background(), b.st.Write)
		case <-b.quit:
			return
		}
		if b.tryingAgain() {
			timer.Reset(again)
		}
	}
}

// tryingAgain reports whether entries are kept whose write failed and may succeed.
func (b *behind) tryingAgain() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil && !final(b.err)
}

// held is why nothing is taken now, nil where it is.
func (b *behind) held() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// write takes what there is and writes it with commit. What cannot be written now
// is kept, and nothing more is taken until it was written.
func (b *behind) write(ctx context.Context, commit func(context.Context, func(Tx) error) error) {
	b.mu.Lock()
	entries, waiters, err := b.entries, b.waiters, b.err
	if !final(err) {
		err = nil
	}
	b.entries, b.spare, b.waiters = b.spare[:0], nil, nil
	b.writing = true
	close(b.room)
	b.room = make(chan struct{})
	b.mu.Unlock()

	// The write uses no caller's context: the batch holds entries of many callers, some of
	// which have already returned.
	if err == nil && len(entries) > 0 {
		err = lapsing(func() error {
			return commit(ctx, func(tx Tx) error {
				for _, e := range entries {
					tx.Append(e)
				}
				return nil
			})
		})
	}

	b.mu.Lock()
	b.writing = false
	b.err = err
	if err != nil && !final(err) {
		b.entries = append(entries, b.entries...)
	} else {
		clear(entries)
		b.spare = entries[:0]
	}
	b.mu.Unlock()
	for _, done := range waiters {
		done <- err
	}
}

// close ends the goroutine and writes what is left.
func (b *behind) close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		<-b.ended
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	close(b.quit)
	<-b.ended

	for n := range closing {
		b.write(settling(context.Background()), b.st.WriteLast)
		if err := b.held(); err == nil || final(err) || errors.Is(err, ErrFull) {
			break
		}
		if n+1 < closing {
			time.Sleep(again)
		}
	}
	return b.held()
}

// signal leaves a token, unless one is there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
