package process

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A plugin that answers one call and crashes at the next is started with a wait that calls put up with, not as fast as it
// crashes; one that stays up is forgiven.
func TestASuccessBetweenCrashesDoesNotRestartAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &group{key: key{scope: protocol.Scope{Kind: plugin.IsolationTenant}}}
		young := &worker{group: g, began: time.Now()}
		var wait time.Duration
		for range 20 {
			g.failed()
			wait = time.Until(g.retryAt)
			g.succeeded(young)
			if !g.retryAt.IsZero() {
				t.Fatal("with a process that answers, a start is still put off")
			}
		}
		if wait < firstBackoff || wait > patience {
			t.Errorf("the next start is put off by %s; want %s to %s", wait, firstBackoff, patience)
		}
		g.succeeded(&worker{group: g, began: time.Now().Add(-steady)})
		if g.failed(); !g.retryAt.IsZero() {
			t.Errorf("after a process that stayed up, the next start is put off by %s", time.Until(g.retryAt))
		}
	})
}

// Many failures without a success put a start off for longer than a call waits.
func TestFailuresWithoutASuccessRefuseCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &group{key: key{scope: protocol.Scope{Kind: plugin.IsolationTenant}}}
		for range 8 {
			g.failed()
		}
		if wait := time.Until(g.retryAt); wait <= patience {
			t.Errorf("after 8 failures the next start is put off by %s", wait)
		}
	})
}
