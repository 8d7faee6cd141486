package process_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/plugin"
)

// A gate is the services of calls that a test holds back. A plugin asks for
// "gate.pass" and gets the answer once the gate is open.
type gate struct {
	reached chan struct{} // has a value for each call that came to the gate
	opened  chan struct{}

	mu   sync.Mutex // guards the rest
	now  int        // calls at the gate
	most int        // calls that were at the gate at a time
}

func newGate() *gate {
	return &gate{reached: make(chan struct{}, 64), opened: make(chan struct{})}
}

// open lets all calls pass, those too that come later.
func (g *gate) open() { close(g.opened) }

// await returns when one more call is at the gate.
func (g *gate) await(t testing.TB) {
	t.Helper()
	testwait.Receive(t, "a call at the gate", g.reached)
}

// counts returns how many calls are at the gate, and how many were at a time.
func (g *gate) counts() (now, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now, g.most
}

func (g *gate) Serve(ctx context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	if method != "gate.pass" {
		return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s is not available", method)
	}
	g.count(1)
	defer g.count(-1)
	g.reached <- struct{}{}
	select {
	case <-g.opened:
		return json.RawMessage(`{}`), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (g *gate) count(change int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += change
	g.most = max(g.most, g.now)
}

// expiring returns a context whose time is up when expire is called.
func expiring(t testing.TB) (ctx context.Context, expire func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, func() { cancel(plugin.Errorf(plugin.CodeTimeout, "too slow")) }
}
