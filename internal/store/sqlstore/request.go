package sqlstore

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/store"
)

// A request is one caller of Write.
//
//	waiting    the caller may still go: nothing of it is in a transaction
//	taken      it hears the outcome
//	leaving    taken, and the caller wants to go as soon as it may
//	withdrawn  the caller went
type request struct {
	ctx  context.Context
	fn   func(store.Tx) error // nil only with last
	last bool                 // the node leaves the books

	tenant string // whose rows fn may have; [store.AllTenants] for the site

	state atomic.Int32
	done  chan error // buffered: the committer never waits for a caller
}

const (
	waiting int32 = iota
	taken
	leaving
	withdrawn
)

// outcome waits for what became of r, or for its caller to have enough and be
// free to go.
func (r *request) outcome() error {
	select {
	case err := <-r.done:
		return err
	case <-r.ctx.Done():
	}
	for {
		if r.state.CompareAndSwap(waiting, withdrawn) {
			return context.Cause(r.ctx)
		}
		if r.state.CompareAndSwap(taken, leaving) {
			return <-r.done
		}
	}
}

// take claims r for a transaction, unless its caller went.
func (r *request) take() bool { return r.state.CompareAndSwap(waiting, taken) }

// park lets the callers of batch go whose contexts have ended, while there is
// no transaction, and returns the others.
func park(batch []*request) []*request {
	return slices.DeleteFunc(batch, func(r *request) bool {
		if r.state.CompareAndSwap(taken, waiting) {
			return false
		}
		r.done <- context.Cause(r.ctx)
		return true
	})
}

// retake claims again what was parked.
func retake(batch []*request) []*request {
	return slices.DeleteFunc(batch, func(r *request) bool { return !r.take() })
}

func tell(batch []*request, err error) {
	for _, r := range batch {
		r.done <- err
	}
}
