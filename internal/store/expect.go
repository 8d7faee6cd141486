package store

import (
	"context"
	"sync/atomic"

	"github.com/mortise-dev/mortise/plugin"
)

// ErrChanged refuses a write that rests on something which another has changed since.
var ErrChanged = plugin.Errorf(plugin.CodeConflict, "it was changed meanwhile; look at it again")

// An expectation is how something stood when the one who changes it looked at it.
type expectation struct {
	read func(ctx context.Context, from Reader) (string, error)
	seen string
	over atomic.Bool
	held atomic.Bool // in a transaction
}

type expectationKey struct{}

// Expect returns a context whose writes fail with [ErrChanged] where read, in their own
// transaction, no longer returns what it returns now. That ends with the first of them
// which changes it, as is then meant, or with done. Where nothing was written, done
// reports [ErrChanged] as a write would have.
func Expect(ctx context.Context, from Reader, read func(ctx context.Context, from Reader) (string, error)) (expecting context.Context, done func() error, err error) {
	e := &expectation{read: read}
	if e.seen, err = read(ctx, from); err != nil {
		return ctx, nil, err
	}
	return context.WithValue(ctx, expectationKey{}, e), func() error {
		if e.over.Swap(true) || e.held.Load() {
			return nil
		}
		now, err := read(ctx, from)
		if err == nil && now != e.seen {
			err = ErrChanged
		}
		return err
	}, nil
}

// ExpectNothing returns a context whose writes rest on nothing.
func ExpectNothing(ctx context.Context) context.Context {
	return context.WithValue(ctx, expectationKey{}, (*expectation)(nil))
}

type keepsKey struct{}

// Keeping returns a context for reading, in a transaction, rows that must stay as they are until it
// ends: what is then written over them is a compare-and-set.
func Keeping(ctx context.Context) context.Context { return context.WithValue(ctx, keepsKey{}, true) }

// Keeps reports whether the rows that are read for ctx in a transaction must stay as they
// are until it ends, where the engine has concurrent writers.
func Keeps(ctx context.Context) bool {
	keeps, _ := ctx.Value(keepsKey{}).(bool)
	return keeps
}

// Expecting returns fn as a store that implements [Writer] runs it for ctx, and what it
// then tells the outcome of the write to.
func Expecting(ctx context.Context, fn func(Tx) error) (checked func(Tx) error, settle func(error)) {
	e, _ := ctx.Value(expectationKey{}).(*expectation)
	if e == nil || fn == nil || e.over.Load() {
		return fn, func(error) {}
	}
	changes := false
	checked = func(tx Tx) error {
		changes = false
		ctx := context.WithValue(ctx, keepsKey{}, true)
		before, err := e.read(ctx, tx)
		if err != nil {
			return err
		}
		if before != e.seen {
			return ErrChanged
		}
		if err := fn(tx); err != nil {
			return err
		}
		after, err := e.read(ctx, tx)
		changes = after != before
		return err
	}
	return checked, func(err error) {
		if err == nil {
			e.held.Store(true)
			if changes {
				e.over.Store(true)
			}
		}
	}
}
