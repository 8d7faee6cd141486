package script

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// A listener only receives events. `e => seen.push(e)` returns a number without meaning to: the
// value is ignored, and the author is told once, because one who meant to change a tool's result
// would believe that it was changed.
func TestAValueThatAListenerReturnsIsIgnored(t *testing.T) {
	for _, e := range event.Catalogue {
		if e.Shape != event.Listener {
			continue
		}
		for answer, silent := range map[string]bool{
			`undefined`: true, `null`: true, `Promise.resolve()`: true,
			`1`: false, `""`: false, `false`: false, `({})`: false, `[]`: false, `() => {}`: false, `e`: false, `({...e, ok: true})`: false,
			`Promise.resolve({})`: false, `Symbol("x")`: false, `[].push(e)`: false, `({ get allow() { throw new Error("read") } })`: false,
		} {
			var told, logged []string
			s := opened(t, `export function register(ctx) { ctx.bus.on("`+e.Name+`", (e) => `+answer+`, { failureMode: "fail" }) }`, Environment{
				Plugin: "p", Ignored: func(what string) { told = append(told, what) },
				Log: func(_, message string, _ json.RawMessage) { logged = append(logged, message) },
			}).Subscriptions()
			for range 2 {
				if err := s[0].Listen(t.Context(), payload(t, e.Example)); err != nil {
					t.Errorf("%s returned %s: %v, want no failure", e.Name, answer, err)
				}
			}
			if want := 1; silent && len(told) != 0 || !silent && (len(told) != want || !strings.Contains(told[0], "which is ignored")) {
				t.Errorf("%s returned %s: the author is told %q", e.Name, answer, told)
			}
			if len(logged) > 0 {
				t.Errorf("%s returned %s: the log has %q beside", e.Name, answer, logged)
			}
		}
	}
	var logged []string
	s := opened(t, `export function register(ctx) { const seen = []; ctx.bus.on("session.closed@v1", (e) => seen.push(e)) }`, Environment{
		Plugin: "p", Log: func(level, message string, _ json.RawMessage) { logged = append(logged, level+": "+message) },
	}).Subscriptions()
	if err := s[0].Listen(t.Context(), payload(t, `{}`)); err != nil || len(logged) != 1 || !strings.HasPrefix(logged[0], "warn: ") || !strings.Contains(logged[0], "a number") {
		t.Errorf("%v, and the log has %q, want one warning about a number", err, logged)
	}
}

// What plugin.error carries is what the handler said, for those who match on it;
// the log and the error that ends a turn say the rest.
func TestPluginErrorCarriesTheHandlersOwnMessage(t *testing.T) {
	for source, want := range map[string]string{
		`throw new Error("out of cheese")`:     "out of cheese",
		`throw new TypeError("no such thing")`: "no such thing",
		`throw "plain text"`:                   "plain text",
		`throw new (class Odd extends Error { constructor() { super("mine"); this.name = "Odd" } })()`: "mine",
		`return Promise.reject(new Error("later"))`:                                                    "later",
		`throw new Error("")`: "",
	} {
		bus := event.NewBus("support", event.Options{})
		told := make(chan string, 1)
		if _, err := bus.On(event.Subscription{Event: event.PluginError, Listen: func(_ context.Context, p *event.Payload) error {
			told <- p.String("message")
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		for _, s := range opened(t, `export function register(ctx) { ctx.bus.on("session.closed@v1", () => { `+source+` }) }`, Environment{Plugin: "p"}).Subscriptions() {
			if _, err := bus.On(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := bus.Emit(t.Context(), event.SessionClosed, payload(t, `{}`)); err != nil {
			t.Fatal(err)
		}
		if got := <-told; got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
		bus.Close()
	}
}
