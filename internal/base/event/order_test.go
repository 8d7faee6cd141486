package event

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

func TestBeforeAndAfterOrderHandlersOfOnePriority(t *testing.T) {
	t.Parallel()
	type s = Subscription
	for want, subscriptions := range map[string][]s{
		"a b c":   {{Plugin: "c", After: []string{"b"}}, {Plugin: "b", After: []string{"a"}}, {Plugin: "a"}},
		"c a b":   {{Plugin: "a"}, {Plugin: "b"}, {Plugin: "c", Before: []string{"a", "b"}}},
		"a d b c": {{Plugin: "a"}, {Plugin: "b", After: []string{"d"}}, {Plugin: "c", After: []string{"b"}}, {Plugin: "d"}},
		"b b a a": {{Plugin: "a", After: []string{"b"}}, {Plugin: "b"}, {Plugin: "a", After: []string{"b"}}, {Plugin: "b"}},
		"x y":     {{Plugin: "x", After: []string{"absent"}}, {Plugin: "y", Before: []string{"absent"}}},                       // a plugin that is absent constrains no order
		"b a":     {{Plugin: "a", Priority: new(float64(2)), Before: []string{"b"}}, {Plugin: "b", Priority: new(float64(1))}}, // priority comes first
	} {
		bus := newTestBus(t)
		var heard []string
		for _, s := range subscriptions {
			s.Event, s.Listen = ToolAfter, says(&heard, s.Plugin)
			on(t, bus, s)
		}
		if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(heard, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCyclesAreRefused(t *testing.T) {
	t.Parallel()
	for want, subscriptions := range map[string][]Subscription{
		"a < b < a;":     {{Plugin: "a", Before: []string{"b"}}, {Plugin: "b", Before: []string{"a"}}},
		"a < b < c < a;": {{Plugin: "b", After: []string{"a"}}, {Plugin: "x"}, {Plugin: "c", After: []string{"b"}}, {Plugin: "a", After: []string{"c"}}},
		"a < a;":         {{Plugin: "a", After: []string{"a"}}},
	} {
		bus := newTestBus(t)
		var heard []string
		last := len(subscriptions) - 1
		for i, s := range subscriptions {
			s.Event, s.Listen = ToolAfter, says(&heard, s.Plugin)
			_, err := bus.On(s)
			if i < last && err != nil {
				t.Fatal(err)
			}
			if i == last && (plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "each other: "+want)) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil || len(heard) != last {
			t.Errorf("those that were taken before: %v, %v", heard, err)
		}
	}
}

// TestOrderingIsBounded lets a plugin be as tiresome as it may.
func TestOrderingIsBounded(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range MaxNeighbours {
		names = append(names, fmt.Sprintf("plugin_%d", i))
	}
	bus := newTestBus(t)
	for range MaxPluginHandlers {
		on(t, bus, Subscription{Event: ToolAfter, Plugin: "tiresome", Before: names, Listen: func(context.Context, *Payload) error { return nil }})
	}
}
