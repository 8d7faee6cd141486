package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// One owner gets no more than half while another has none, and another's answer does
// not wait behind it.
func TestAnOwnersAnswersDoNotKeepAnothersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &turns{capacity: 16}
		ctx := t.Context()
		for range 2 {
			if err := r.take(ctx, "greedy", 4, false); err != nil {
				t.Fatal(err)
			}
		}
		more := make(chan error, 1)
		go func() { more <- r.take(ctx, "greedy", 4, false) }()
		if synctest.Wait(); !r.wanted() {
			t.Fatalf("it does not wait: %s", r)
		}
		if err := r.take(ctx, "modest", 8, false); err != nil {
			t.Fatalf("%v: %s", err, r)
		}
		select {
		case err := <-more:
			t.Fatalf("the greedy one has more than half: %v, %s", err, r)
		case <-time.After(20 * time.Millisecond):
		}
		r.give("greedy", 4)
		if err := <-more; err != nil {
			t.Fatal(err)
		}
		r.give("greedy", 8)
		r.give("modest", 8)
		if r.used != 0 || len(r.by) != 0 || len(r.waiting) != 0 {
			t.Errorf("not all was given back: %s", r)
		}
	})
}

// An answer that needs all waits until it has all, and those after it do not pass it
// by for ever.
func TestALargeAnswerGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &turns{capacity: 16}
		if err := r.take(t.Context(), "a", 4, false); err != nil {
			t.Fatal(err)
		}
		whole := make(chan error, 1)
		go func() { whole <- r.take(t.Context(), "b", 16, false) }()
		if synctest.Wait(); !r.wanted() {
			t.Fatalf("it does not wait: %s", r)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := r.take(ctx, "c", 1, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one that came later had its turn before: %v", err)
		}
		r.give("a", 4)
		if err := <-whole; err != nil || r.used != 16 {
			t.Errorf("%v, %s", err, r)
		}
	})
}

// What keeps room that others wait for is told, and what is over gives all back.
func TestAnAnswerThatKeepsOthersWaitingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := bigAnswers
		bigAnswers = &turns{capacity: 16 << 20, patience: 10 * time.Millisecond}
		defer func() { bigAnswers = old }()
		ctx, a := Answering(t.Context(), "slow")
		if err := AnswerOf(ctx).Take(ctx, 16<<20); err != nil {
			t.Fatal(err)
		}
		told := make(chan struct{}, 1)
		a.Overdue(func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
		select {
		case <-told:
			t.Error("it was told, and none waits")
		case <-time.After(50 * time.Millisecond):
		}
		next, b := Answering(t.Context(), "next")
		served := make(chan error, 1)
		go func() { served <- b.Take(next, 2<<20) }()
		<-told
		a.Leave()
		a.Leave()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		if err := a.Take(ctx, 2<<20); err != nil {
			t.Error(err)
		}
		b.Leave()
		if bigAnswers.used != 0 {
			t.Errorf("not all was given back: %s", bigAnswers)
		}
	})
}
