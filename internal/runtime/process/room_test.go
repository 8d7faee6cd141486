package process_test

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

// What would be refused because too many wait is known before the call is claimed.
func TestThereIsRoomUntilTooManyWait(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1, MaxWaiting: 1})
	asked := target("serial", "sleep")
	ended := make(chan error, 2)
	for i := range 2 { // one at work, and one that waits
		if err := r.Room(asked, call(`{}`)); err != nil {
			t.Fatalf("with %d calls: %v", i, err)
		}
		begun := make(chan struct{}, 10)
		go func() {
			_, err := run(t, r, asked, beginning(call(`{"ms":1500}`), begun))
			ended <- err
		}()
		if i == 0 {
			<-begun
		}
	}
	for plugin.CodeOf(r.Room(asked, call(`{}`))) != plugin.CodeOverloaded {
		select {
		case err := <-ended:
			t.Fatalf("there was room while as many waited as may: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := r.Room(asked, call(`{}`)); err != nil {
		t.Errorf("when none waits any more: %v", err)
	}
}
