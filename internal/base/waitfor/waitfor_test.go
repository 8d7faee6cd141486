package waitfor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/base/waitfor"
)

// A pool is a resource with so many places.
type pool struct {
	mu      sync.Mutex
	room    int
	holders []*waitfor.Call
	changed chan struct{}
}

func (p *pool) Holders() ([]*waitfor.Call, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.holders), len(p.holders) < p.room
}

// hold takes a place, and reports whether it may wait for one.
func (p *pool) hold(c *waitfor.Call) bool {
	var wait *waitfor.Wait
	for {
		p.mu.Lock()
		if len(p.holders) < p.room {
			p.holders = append(p.holders, c)
			p.mu.Unlock()
			if wait != nil {
				wait.End()
			}
			return true
		}
		changed := p.changed
		p.mu.Unlock()
		if wait == nil {
			if wait = waitfor.Begin(c, p); wait == nil {
				return false
			}
			continue
		}
		<-changed
	}
}

func (p *pool) give(c *waitfor.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.holders, c)
	p.holders = slices.Delete(p.holders, i, i+1)
	close(p.changed)
	p.changed = make(chan struct{})
}

// However calls are nested over however small pools, and wait for each other's
// end, they come to an end: what would close a cycle is refused, and nothing is
// where there is none.
func TestNoNestOfCallsWaitsForItself(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		pools := make([]*pool, 1+seed%4)
		for i := range pools {
			pools[i] = &pool{room: 1 + int(seed/4)%3, changed: make(chan struct{})}
		}
		var ids, refused atomic.Int64
		var visit func(ctx context.Context, r *rand.Rand, depth int)
		visit = func(ctx context.Context, r *rand.Rand, depth int) {
			ctx, c := waitfor.Enter(ctx, fmt.Sprintf("%d/%d", seed, ids.Add(1)))
			defer c.Leave()
			p := pools[r.IntN(len(pools))]
			if !p.hold(c) {
				refused.Add(1)
				return
			}
			defer p.give(c)
			if depth == 0 {
				return
			}
			var below sync.WaitGroup
			for range 1 + r.IntN(2) {
				sub := rand.New(rand.NewPCG(r.Uint64(), 1))
				below.Go(func() { visit(ctx, sub, depth-1) })
			}
			below.Wait()
		}
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() { visit(t.Context(), rand.New(rand.NewPCG(seed, uint64(i))), i%4) })
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		testwait.Receive(t, fmt.Sprintf("the end of all calls with seed %d: they wait for each other", seed), done)
	}
}

func TestAWaitIsRefusedOnlyWhereItClosesACycle(t *testing.T) {
	t.Parallel()
	enter := func(ctx context.Context, id string) (context.Context, *waitfor.Call) {
		ctx, c := waitfor.Enter(ctx, id)
		t.Cleanup(c.Leave)
		return ctx, c
	}
	a, ca := enter(t.Context(), "a")
	b, cb := enter(t.Context(), "b")
	_, inA := enter(a, "in a")
	_, inB := enter(b, "in b")
	first, second := &pool{room: 1, holders: []*waitfor.Call{ca}}, &pool{room: 1, holders: []*waitfor.Call{cb}}
	if waitfor.Begin(inA, first) != nil {
		t.Error("a call may wait for what its caller holds")
	}
	if waitfor.Begin(inA, waitfor.EndOf("a")) != nil {
		t.Error("a call may wait for the end of its caller")
	}
	wait := waitfor.Begin(inA, second)
	if wait == nil {
		t.Fatal("a call may not wait for what another holds that waits for nothing")
	}
	if waitfor.Begin(inB, first) != nil || waitfor.Begin(inB, waitfor.EndOf("a")) != nil {
		t.Error("two calls may wait for each other")
	}
	both := &pool{room: 2, holders: []*waitfor.Call{ca, cb}}
	if w := waitfor.Begin(inB, both); w != nil {
		t.Error("of two that hold it, one waits for b and the other is b")
	}
	wait.End()
	if w := waitfor.Begin(inB, first); w == nil {
		t.Error("nothing waits for b any more")
	} else {
		w.End()
	}
	if w := waitfor.Begin(nil, first); w == nil {
		t.Error("what holds nothing waits for what it likes")
	} else {
		w.End()
	}
}
