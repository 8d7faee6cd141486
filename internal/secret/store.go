package secret

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// Guard returns a store whose entries are written without secrets, whoever
// appends them.
func (s *Scrubber) Guard(st store.Store) store.Store { return &guarded{st, s} }

type guarded struct {
	store.Store
	s *Scrubber
}

var _ store.Store = (*guarded)(nil)

// Write implements [store.Store].
func (g *guarded) Write(ctx context.Context, fn func(store.Tx) error) error {
	return g.Store.Write(ctx, g.wrap(fn))
}

// WriteLast implements [store.Store].
func (g *guarded) WriteLast(ctx context.Context, fn func(store.Tx) error) error {
	return g.Store.WriteLast(ctx, g.wrap(fn))
}

// Recover implements [store.Store].
func (g *guarded) Recover(ctx context.Context, fn func(store.Tx, store.NodeRow) error) (int, error) {
	return g.Store.Recover(ctx, func(tx store.Tx, n store.NodeRow) error { return fn(&guardedTx{tx, g.s}, n) })
}

func (g *guarded) wrap(fn func(store.Tx) error) func(store.Tx) error {
	if fn == nil {
		return nil
	}
	return func(tx store.Tx) error { return fn(&guardedTx{tx, g.s}) }
}

type guardedTx struct {
	store.Tx
	s *Scrubber
}

// Append implements [store.Tx].
func (t *guardedTx) Append(e plugin.Entry) {
	if !t.s.idle() {
		e.Subject, e.Principal = t.s.Text(e.Subject), t.s.Text(e.Principal)
		if len(e.Body) > 0 {
			e.Body = t.s.JSON(e.Body)
		}
	}
	t.Tx.Append(e)
}
