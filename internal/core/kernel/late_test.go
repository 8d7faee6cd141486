package kernel_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// The answer to an effect that comes after its attempt is over is kept with its text,
// whatever became of the call. Where that goes on, the answer is taken for the next
// attempt's own, and nothing is sent again.
func TestALateAnswerIsKeptAndTakenByTheNextAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change []func(*plugin.Target)
		state  store.CallState // that the call has when the answer comes
	}{
		"a call that is unknown": {nil, store.CallUnknown},
		"a call that goes on":    {[]func(*plugin.Target){keyed}, store.CallQueued},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox(t)
			b, send := sender(t, m, c.change...)
			b.do = send(1)
			inner, once := m.Config.Handler, sync.Once{}
			m.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				once.Do(func() { // its host is taken for dead while it waits for the answer
					rows, err := b.store.Calls(t.Context(), store.CallFilter{State: store.CallRunning})
					if err != nil || len(rows) != 1 {
						t.Errorf("%+v, %v", rows, err)
						return
					}
					if won, err := b.ledger.Abandoned(t.Context(), rows[0], time.Now()); err != nil || !won {
						t.Errorf("it was not given up: %v", err)
					}
				})
				inner.ServeHTTP(w, r)
			})
			call := asking("mail/send", `{}`)
			call.ID, call.Key = "0192aaaa-0000-7000-8000-000000000003", "once"
			if res, err := b.Call(t.Context(), call); err == nil && res.Status == plugin.Succeeded && c.state == store.CallUnknown {
				t.Errorf("an attempt that was over ended with %+v", res)
			}
			if lines := b.journal(t, call.ID); len(lines) != 1 || !strings.Contains(lines[0], " late 1") && c.state == store.CallUnknown {
				t.Errorf("the journal has %q", lines)
			}
			all, err := b.ledger.List(t.Context(), ledger.Filter{Limit: 100})
			if err != nil || !slices.ContainsFunc(all, func(e plugin.Entry) bool { return e.Kind == plugin.EntryEffectLate }) {
				t.Errorf("no entry says that an answer came late: %v", err)
			}
			effects, err := b.store.Effects(t.Context(), "local", call.ID)
			if err != nil || len(effects) != 1 {
				t.Fatal(effects, err)
			}
			if text, err := b.store.Body(t.Context(), "local", effects[0].ResponseHash); err != nil || !strings.Contains(string(text), `received`) {
				t.Errorf("the answer is kept as %s, %v", text, err)
			}
			if c.state == store.CallQueued {
				done, err := b.Await(t.Context(), "local", call.ID)
				if err != nil || done.Status != plugin.Succeeded || !strings.Contains(string(done.Data), "received") {
					t.Errorf("in the end it is %+v, %v", done, err)
				}
			} else if row, err := b.store.Call(t.Context(), "local", call.ID); err != nil || row.State != store.CallUnknown {
				t.Errorf("the call is %+v, %v", row, err)
			}
			if sent := m.all(); len(sent) != 1 {
				t.Errorf("sent: %q", sent)
			}
		})
	}
}
