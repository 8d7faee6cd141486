package budget

import (
	"context"
	"errors"
)

// ErrSpent says that work was given up because it took more steps than it may.
var ErrSpent = errors.New("takes more work than the host does for it")

// lookEvery is after how many steps the context is looked at again.
const lookEvery = 1 << 14

// Steps bounds work whose cost a caller or a plugin chooses, such as matching a pattern. The
// work takes its steps before it does them, and goes on only while it gets them. One step is
// some hundred nanoseconds at most. It is not safe for concurrent use.
type Steps struct {
	ctx  context.Context
	left int
	look int // steps until the context is looked at
	err  error
}

// NewSteps returns so many steps, which are given until ctx ends.
func NewSteps(ctx context.Context, most int) *Steps { return &Steps{ctx: ctx, left: most} }

// Take takes n steps and reports whether the work may go on. Once it reports false it always
// does; [Steps.Err] has the reason.
func (s *Steps) Take(n int) bool {
	if s.left -= n; s.left < 0 {
		s.End(ErrSpent)
		return false
	}
	if s.look -= n; s.look <= 0 {
		s.look = lookEvery
		if s.ctx.Err() != nil {
			s.End(context.Cause(s.ctx))
			return false
		}
	}
	return true
}

// End ends the work for a reason of its own.
func (s *Steps) End(why error) {
	s.left = -1
	if s.err == nil {
		s.err = why
	}
}

// Left returns how many steps may still be taken.
func (s *Steps) Left() int { return max(s.left, 0) }

// Err returns why work must not go on: [ErrSpent] or the cause of the context's end. It is
// nil while there are steps.
func (s *Steps) Err() error { return s.err }
