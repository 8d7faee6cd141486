package llm

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// TestAWaitingRetryHoldsNoSlot: with one slot, a query whose provider is away
// waits, and one of another tenant is answered meanwhile.
func TestAWaitingRetryHoldsNoSlot(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"openai", "anthropic", "gemini"} {
		w := newWire(t, format)
		var away atomic.Bool
		away.Store(true)
		w.answer = func(out http.ResponseWriter, _ *http.Request, _ int) {
			if away.Swap(false) {
				http.Error(out, "{}", http.StatusServiceUnavailable)
				return
			}
			w.fine(out, "fine", 10, 5)
		}
		waits, goes := make(chan struct{}), make(chan struct{})
		d := newDesk(t, func(o *Options) {
			o.AtOnce = 1
			o.Wait = func(context.Context, time.Duration) error { close(waits); <-goes; return nil }
		}, w.model("m", Light))
		first, second := make(chan Answer, 1), make(chan Answer, 1)
		go func() { first <- d.ask(Query{}) }()
		<-waits
		go func() { second <- d.ask(Query{}) }()
		if a := testwait.Receive(t, format+": the answer to the other query", second); !a.OK {
			t.Errorf("%s: %+v", format, a.Err)
		}
		close(goes)
		if a := <-first; !a.OK || a.Attempts != 2 {
			t.Errorf("%s: the first got %+v", format, a)
		}
		if n := len(d.Dispatcher.slots); n != 0 {
			t.Errorf("%s: %d slots are left held", format, n)
		}
	}
}
