package agent

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
)

// A tainting collects the labels of what was read from an agent's memory, on
// behalf of whatever its context belongs to, and of all that contains that.
type tainting struct {
	outer *tainting

	mu     sync.Mutex // guards labels
	labels []string
}

type taintingKey struct{}

// Tainting returns a context in which each read of an agent's memory counts, as
// does each [Taint], and what returns the labels of all that was read in it so far.
func Tainting(ctx context.Context) (context.Context, func() []string) {
	outer, _ := ctx.Value(taintingKey{}).(*tainting)
	t := &tainting{outer: outer}
	return context.WithValue(ctx, taintingKey{}, t), t.read
}

func (t *tainting) read() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.labels
}

// Taint takes note of the labels of something that was read, or that a hook brought in
// from outside.
func Taint(ctx context.Context, labels []string) {
	if len(labels) == 0 {
		return
	}
	t, _ := ctx.Value(taintingKey{}).(*tainting)
	for ; t != nil; t = t.outer {
		t.mu.Lock()
		t.labels = plugin.Labels(t.labels, labels)
		t.mu.Unlock()
	}
}
