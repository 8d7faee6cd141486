package script

import (
	"context"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// A listener only receives events. Its return value would be dropped, and an author who
// meant to change a tool's result would believe that it was changed.
func TestAValueThatAListenerReturnsIsAFailure(t *testing.T) {
	for _, e := range event.Catalogue {
		if e.Shape != event.Listener {
			continue
		}
		for answer, fits := range map[string]bool{
			`undefined`: true, `null`: true, `Promise.resolve()`: true,
			`1`: false, `""`: false, `false`: false, `{}`: false, `[]`: false, `() => {}`: false, `e`: false, `({...e, ok: true})`: false,
			`Promise.resolve({})`: false, `Symbol("x")`: false,
		} {
			if answer == `{}` {
				answer = `({})`
			}
			s := opened(t, `export function register(ctx) { ctx.bus.on("`+e.Name+`", (e) => `+answer+`) }`, Environment{Plugin: "p"}).Subscriptions()
			err := s[0].Listen(t.Context(), payload(t, e.Example))
			if (err == nil) != fits || err != nil && (plugin.CodeOf(err) != plugin.CodeInvalidOutput || !strings.Contains(err.Error(), "returns nothing")) {
				t.Errorf("%s returned %s: %v", e.Name, answer, err)
			}
		}
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
