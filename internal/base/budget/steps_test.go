package budget

import (
	"context"
	"errors"
	"math"
	"testing"
)

func TestStepsEndOnceAndStayEnded(t *testing.T) {
	t.Parallel()
	s := NewSteps(t.Context(), 10)
	if !s.Take(4) || !s.Take(6) || s.Left() != 0 || s.Err() != nil {
		t.Fatalf("after 10 of 10 steps: left %d, %v; want 0 and no error", s.Left(), s.Err())
	}
	for range 3 {
		if s.Take(1) || !errors.Is(s.Err(), ErrSpent) || s.Left() != 0 {
			t.Errorf("beyond the last step: left %d, %v; want ErrSpent", s.Left(), s.Err())
		}
	}
	if s = NewSteps(t.Context(), 10); s.Take(math.MaxInt) || !errors.Is(s.Err(), ErrSpent) || s.Take(1) {
		t.Errorf("all at once: %v; want ErrSpent", s.Err())
	}
}

func TestStepsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := NewSteps(ctx, math.MaxInt)
	if !s.Take(1) {
		t.Fatalf("the first step was refused: %v", s.Err())
	}
	cancel(stopped)
	taken := 1
	for s.Take(1) {
		if taken++; taken > lookEvery {
			t.Fatalf("%d steps were given after the end of the context", taken)
		}
	}
	if !errors.Is(s.Err(), stopped) {
		t.Errorf("the reason is %v, want the cause of the context's end", s.Err())
	}
}
