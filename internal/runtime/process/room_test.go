package process_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

// What would be refused because too many wait is known before the call is claimed.
func TestThereIsRoomUntilTooManyWait(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1, MaxWaiting: 1})
	asked, held := target("serial", "hold"), newGate()
	ended := make(chan error, 2)
	for i := range 2 { // one at work, and one that waits
		if err := r.Room(asked, call(`{}`)); err != nil {
			t.Fatalf("with %d calls: %v", i, err)
		}
		go func() {
			_, err := r.Run(t.Context(), asked, call(`{}`), held)
			ended <- err
		}()
		if i == 0 {
			held.await(t)
		}
	}
	testwait.Until(t, "one call is waiting", func() bool { return r.Waiting() == 1 })
	wantCode(t, r.Room(asked, call(`{}`)), plugin.CodeOverloaded)
	held.open()
	for range 2 {
		if err := testwait.Receive(t, "the end of a call", ended); err != nil {
			t.Error(err)
		}
	}
	if err := r.Room(asked, call(`{}`)); err != nil {
		t.Errorf("when none waits any more: %v", err)
	}
}
