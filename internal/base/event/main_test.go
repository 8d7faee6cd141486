package event

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// newTestBus returns a bus that is closed with the test.
func newTestBus(t *testing.T) *Bus {
	t.Helper()
	bus := NewBus("agent", Options{Drain: 5 * time.Second})
	t.Cleanup(bus.Close)
	return bus
}

func payload(t *testing.T, text string) *Payload {
	t.Helper()
	p, err := NewPayload(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func on(t *testing.T, bus *Bus, s Subscription) (off func()) {
	t.Helper()
	off, err := bus.On(s)
	if err != nil {
		t.Fatal(err)
	}
	return off
}

// says is a listener that notes its name.
func says(heard *[]string, name string) func(context.Context, *Payload) error {
	return func(context.Context, *Payload) error { *heard = append(*heard, name); return nil }
}

// appends is a transform that adds a letter to text.
func appends(letter string) func(context.Context, *Payload) (*Payload, error) {
	return func(_ context.Context, p *Payload) (*Payload, error) {
		return p.With("text", `"`+p.String("text")+letter+`"`), nil
	}
}

// allows is a veto handler that allows.
func allows(context.Context, *Payload) (Verdict, error) { return Verdict{Allow: true}, nil }

// pluginErrors collects what plugin.error@v1 carries. It may be read after Close.
func pluginErrors(t *testing.T, bus *Bus) *[]string {
	t.Helper()
	told := new([]string)
	on(t, bus, Subscription{Event: PluginError, Plugin: "watcher", Listen: func(_ context.Context, p *Payload) error {
		*told = append(*told, fmt.Sprintf("%s %s: %s", p.String("pluginId"), p.String("event"), p.String("message")))
		return nil
	}})
	return told
}

func wantCode(t *testing.T, err error, code plugin.Code) {
	t.Helper()
	if plugin.CodeOf(err) != code {
		t.Fatalf("got %v, want the code %s", err, code)
	}
}
