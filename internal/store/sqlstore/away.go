package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/store"
)

// Judge returns an error of the database as callers of a store get it: marked with
// [store.ErrAway] if the database cannot be used now, and as it is if the statement would fail
// again. What ended with its caller's context is the caller's.
func (e *Engine) Judge(ctx context.Context, err error) error {
	if err == nil || store.IsOutage(err) || ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	if e.fault(err) == Refused && (e.Away == nil || !e.Away(err)) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrAway, err)
}

// judge is [Engine.Judge] for a store, which may be closed.
func (s *Store) judge(ctx context.Context, err error) error {
	if err != nil && s.closed.Load() && !store.IsOutage(err) {
		return fmt.Errorf("%w: %w", store.ErrClosed, err)
	}
	return s.engine.Judge(ctx, err)
}
