package tail

import (
	"context"
	"maps"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// A Reader reads the entries of a [Tail] from a position on. It is for one goroutine.
type Reader struct {
	t       *Tail
	pos     Position
	next    uint64   // the number of the next entry in the ring
	goal    Position // what is read from the store before the ring; nil where that is nothing
	pending []Entry
	left    bool
}

// Open returns a reader of what comes after a position; nil means now. Where that
// position is not one of this history, or is too far back, the reader begins now and lost
// is true. The reader must be closed.
func (t *Tail) Open(ctx context.Context, after Position) (r *Reader, lost bool, err error) {
	if err := t.join(ctx); err != nil {
		return nil, false, err
	}
	r = &Reader{t: t}
	known := false
	if after != nil {
		if known, err = t.known(ctx, after); err != nil {
			t.leave()
			return nil, false, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if after == nil || !known || after.behind(t.head) > t.opts.LookBack {
		r.pos, r.next = maps.Clone(t.head), t.first+uint64(len(t.ring))
		return r, after != nil, nil
	}
	r.pos = maps.Clone(after)
	r.enter()
	return r, false, nil
}

// known reports whether a position is one of the history in the store.
func (t *Tail) known(ctx context.Context, p Position) (bool, error) {
	for chain, at := range p {
		e, err := t.src.Entry(ctx, chain, at.Seq)
		if err != nil || e == nil || !strings.HasPrefix(e.Hash, at.Hash) {
			return false, err
		}
	}
	return true, nil
}

// enter begins at the ring, or at the store where the ring has not all that is missing.
// The lock is held.
func (r *Reader) enter() {
	r.next = r.t.first
	if !r.t.start.before(r.pos) {
		r.goal, r.next = maps.Clone(r.t.head), r.t.first+uint64(len(r.t.ring))
	}
}

// Close counts the reader out.
func (r *Reader) Close() {
	if !r.left {
		r.left = true
		r.t.leave()
	}
}

// Position returns where the reader is: after the last entry that it was told is done.
func (r *Reader) Position() Position { return r.pos }

// Head returns where the chains end, as far as they were read for any reader.
func (r *Reader) Head() Position {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return maps.Clone(r.t.head)
}

// Next returns the next entry, the same one until [Reader.Done] is called. Where there is
// none, and wait is nil, it returns nil; else it waits until there is one, or until wait
// ends, whose cause is the error.
func (r *Reader) Next(ctx, wait context.Context) (*Entry, error) {
	for {
		for len(r.pending) > 0 {
			if e := &r.pending[0]; e.Seq > r.pos[e.Chain].Seq {
				return e, nil
			}
			r.pending = r.pending[1:]
		}
		if r.goal != nil {
			if err := r.catchUp(ctx); err != nil {
				return nil, err
			}
			continue
		}
		more, changed := r.take()
		switch {
		case more:
		case wait == nil:
			return nil, nil
		default:
			select {
			case <-changed:
			case <-wait.Done():
				return nil, context.Cause(wait)
			}
		}
	}
}

// Done says that the entry of [Reader.Next] was dealt with.
func (r *Reader) Done() {
	e := r.pending[0]
	r.pos[e.Chain] = Place{e.Seq, e.Hash}
	r.pending = r.pending[1:]
}

// take takes entries from the ring. It reports whether there were any, or the reader has
// to go back to the store for them.
func (r *Reader) take() (more bool, changed <-chan struct{}) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.next < t.first {
		r.enter()
		return true, nil
	}
	from := t.ring[r.next-t.first:]
	n := min(len(from), batch)
	r.pending = append(r.pending[:0], from[:n]...)
	r.next += uint64(n)
	return n > 0, t.changed
}

// catchUp reads a part of what the ring does not have from the store.
func (r *Reader) catchUp(ctx context.Context) error {
	for chain, end := range r.goal {
		if r.pos[chain].Seq >= end.Seq {
			continue
		}
		entries, err := r.t.after(ctx, chain, r.pos[chain].Seq, end.Seq)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			r.pending = entries
			return nil
		}
		return errGap
	}
	r.goal = nil
	return nil
}

// errGap means that the store has not the entries that come before one that was read.
var errGap = plugin.Errorf(plugin.CodeUnavailable, "the ledger cannot be followed: entries are missing that were there")
