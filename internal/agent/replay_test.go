package agent_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// A delivery that comes in again is known before any hook hears of it: after the
// first, at the same time as the first, in another host, and once its conversation
// has ended.
func TestHooksHearOfADeliveryOnce(t *testing.T) {
	t.Parallel()
	d := channels(t)
	var heard, coming atomic.Int64
	all8 := make(chan struct{}) // closed when eight deliveries come in
	d.equip("shop", "counts", event.Subscription{Event: event.ChannelMessageIn, Transform: func(_ context.Context, p *event.Payload) (*event.Payload, error) {
		heard.Add(1)
		<-all8
		return nil, nil
	}})
	var all sync.WaitGroup
	var seen atomic.Int64
	for range 8 {
		all.Go(func() {
			if coming.Add(1) == 8 {
				close(all8)
			}
			r, err := d.send("msg_1", `{"text":"hello","sender":"U1"}`)
			if err != nil || r.Session == "" {
				t.Errorf("%+v, %v", r, err)
			}
			if r.Seen {
				seen.Add(1)
			}
		})
	}
	all.Wait()
	if heard.Load() != 1 || seen.Load() != 7 {
		t.Errorf("hooks heard it %d times, and %d deliveries were known", heard.Load(), seen.Load())
	}
	other := deskOn(t, d.Store) // another host
	other.plugins = d.plugins
	if r, err := other.send("msg_1", `{"text":"hello","sender":"U1"}`); err != nil || !r.Seen {
		t.Errorf("in another host: %+v, %v", r, err)
	}
	r, err := d.send("msg_1", `{"text":"hello","sender":"U1"}`)
	if err != nil || !r.Seen {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := d.End(t.Context(), "t", r.Session, "user"); err != nil {
		t.Fatal(err)
	}
	if r, err := d.send("msg_1", `{"text":"hello","sender":"U1"}`); err != nil || !r.Seen {
		t.Errorf("after the conversation ended: %+v, %v", r, err)
	}
	if heard.Load() != 1 {
		t.Errorf("hooks heard it %d times", heard.Load())
	}
	for n := range 3 { // others do not wait for it, and are told
		if r, err := d.send(fmt.Sprintf("msg_%d", n+2), `{"text":"hello","sender":"U1"}`); err != nil || r.Seen {
			t.Errorf("another one: %+v, %v", r, err)
		}
	}
	if heard.Load() != 4 {
		t.Errorf("hooks heard of others %d times", heard.Load()-1)
	}
}
