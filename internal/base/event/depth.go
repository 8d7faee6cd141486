package event

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/mortise-dev/mortise/plugin"
)

// MaxDepth is how deep emits may nest: a handler that emits, whose handlers
// emit, and so on, over all buses.
const MaxDepth = 8

// A nested context is what handlers get: it knows how deep they are. Those that
// were made for a context are kept and used again, since they never change, so
// that emitting allocates nothing.
type nested struct {
	context.Context
	depth int
	child atomic.Pointer[nested] // for emits with this very context
}

type nestedKey struct{}

// Value answers for the depth, and leaves all else to the context it is made of.
func (n *nested) Value(key any) any {
	if key == (nestedKey{}) {
		return n
	}
	return n.Context.Value(key)
}

// deeper returns the context for the handlers of a dispatch.
func (b *Bus) deeper(ctx context.Context, event string) (*nested, error) {
	if kept := b.top.Load(); kept != nil && kept.Context == ctx {
		return kept, nil
	}
	if outer, direct := ctx.(*nested); direct {
		if kept := outer.child.Load(); kept != nil {
			return kept, nil
		}
	}
	return b.nest(ctx, event)
}

func (b *Bus) nest(ctx context.Context, event string) (*nested, error) {
	outer, _ := ctx.Value(nestedKey{}).(*nested)
	n := &nested{Context: ctx, depth: 1}
	if outer != nil {
		n.depth = outer.depth + 1
	}
	switch {
	case n.depth > MaxDepth:
		return nil, plugin.Errorf(plugin.CodeLimitExceeded,
			"emitting %s: handlers have emitted from handlers %d deep; find the one that answers an event with the same event", event, MaxDepth)
	case outer == ctx:
		outer.child.Store(n)
	case outer == nil && reusable(ctx):
		b.top.Store(n) // one context of a turn emits many times; the next turn's takes its place
	}
	return n, nil
}

// reusable reports whether == cannot panic for a context of that type.
func reusable(ctx context.Context) bool {
	return ctx == context.Background() || reflect.TypeOf(ctx).Kind() == reflect.Pointer
}
