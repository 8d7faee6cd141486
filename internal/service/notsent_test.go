package service

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// A journalledCall is a call with effects, and the lease of the attempt at work.
type journalledCall struct {
	*scene
	ledger *ledger.Ledger
	store  store.Store
	dir    string // of the store
	lease  ledger.Lease
	record *plugin.CallRecord
}

// journalledIn claims a call of a scene in a ledger of its own.
func journalledIn(t *testing.T, s *scene) *journalledCall {
	t.Helper()
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), st, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.Close(), st.Close() })
	now := time.Now()
	s.call.ID = uuid.Must(uuid.NewV7()).String()
	c := &journalledCall{scene: s, ledger: l, store: st, dir: dir}
	c.record = &plugin.CallRecord{CallID: s.call.ID, Operation: s.target.Name(), Principal: "user:ada", Status: plugin.InProgress}
	c.lease, _, err = l.Claim(t.Context(), ledger.Claim{
		Call: s.call, Target: s.target, Record: c.record, Fingerprint: "f", InputHash: "i", PolicyVersion: "p", Deadline: now.Add(time.Minute), At: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// attempt returns the services of the attempt at work, with its journal.
func (c *journalledCall) attempt() (*grant, *ledger.Journal) {
	c.t.Helper()
	j, err := c.ledger.Journal(c.t.Context(), c.lease)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.broker.For(c.target, c.call, j).(*grant), j
}

// again ends the attempt at work and starts the next.
func (c *journalledCall) again() {
	c.t.Helper()
	now := time.Now()
	if err := c.ledger.Settle(c.t.Context(), c.lease, ledger.Outcome{State: store.CallQueued, WakeAt: now}, c.record, now); err != nil {
		c.t.Fatal(err)
	}
	row, err := c.ledger.Call(c.t.Context(), c.call.Tenant, c.call.ID)
	if err != nil {
		c.t.Fatal(err)
	}
	var won bool
	if c.lease, won, err = c.ledger.Start(c.t.Context(), *row, c.record, "p", now.Add(time.Minute), now, nil); err != nil || !won {
		c.t.Fatal(won, err)
	}
}

// A readBeyond is a connection that does something once more than the headers of an
// answer was read from it: the transport then has handed the answer over.
type readBeyond struct {
	net.Conn
	most int
	then func()
}

func (c *readBeyond) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.most -= n; c.most < 0 {
		c.then()
	}
	return n, err
}

// A request that may change something and was answered is done, and one that went out
// without an answer is open, also where the call is over before the whole answer was
// read. Only one that never went out is not done, which another attempt sends.
func TestOnlyWhatNeverWentOutIsNotDone(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 64<<10)
	for _, test := range []struct {
		name    string
		answers func(w http.ResponseWriter, r *http.Request) // nil: the call ends before
		state   store.EffectState
		sent    int32 // by two attempts
	}{
		{"before it goes out", nil, store.EffectNotDone, 1},
		{"before the answer", func(http.ResponseWriter, *http.Request) {}, store.EffectIntent, 1},
		{"in the body", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, body)
		}, store.EffectDone, 1},
		{"in the body of an error", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, body)
		}, store.EffectDone, 1},
		{"behind a redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				http.Redirect(w, r, "/seen", http.StatusSeeOther)
			}
		}, store.EffectDone, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var sent atomic.Int32
			var second atomic.Bool
			c := journalledIn(t, newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					sent.Add(1)
				}
				if second.Load() {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the host hangs up
				test.answers(w, r)
				switch {
				case strings.HasPrefix(test.name, "in the body"): // the call ends as the host reads it
					_ = http.NewResponseController(w).Flush()
				case r.Method == http.MethodPost && test.name == "behind a redirect":
					return
				default:
					cancel()
				}
				<-r.Context().Done()
			}))
			connect := c.broker.web.connect
			c.broker.web.connect = func(dialing context.Context, address netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
				if test.answers == nil && !second.Load() {
					cancel()
					return nil, context.Cause(ctx)
				}
				conn, err := connect(dialing, address, check)
				if err != nil {
					return nil, err
				}
				return &readBeyond{Conn: conn, most: 8 << 10, then: cancel}, nil
			}
			args := json.RawMessage(`{"method":"POST","url":"http://api.example.com/pay","body":"a"}`)
			g, _ := c.attempt()
			if _, err := g.Serve(ctx, fetchName, args); err == nil {
				t.Fatal("it was answered")
			}
			rows, err := c.store.Effects(t.Context(), c.call.Tenant, c.call.ID)
			if err != nil || len(rows) != 1 || rows[0].State != test.state {
				t.Errorf("the journal has %+v, want one that is %s: %v", rows, test.state, err)
			}
			second.Store(true)
			c.again()
			g, _ = c.attempt()
			_, err = g.Serve(t.Context(), fetchName, args)
			if n := sent.Load(); n != test.sent {
				t.Errorf("it was sent %d times, want %d: %v", n, test.sent, err)
			}
			if e := plugin.AsError(err); e != nil && e.Retryable {
				t.Errorf("what was sent is told as if it could be tried again: %v", err)
			}
		})
	}
}

// A call that is being recorded for later as its own call ends may be there: its intent
// stands, and the next attempt asks for it under the same place.
func TestACallForLaterThatMayBeRecordedIsNotNotDone(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} { // before it was asked for
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newScene(t)
		s.target.Operation.Effects = []string{scheduleWrite}
		var places []string
		s.broker.Enqueue = func(ctx context.Context, call plugin.Call) (plugin.Result, error) {
			places = append(places, call.Place)
			cancel()
			return plugin.Result{CallID: "later"}, ctx.Err()
		}
		c := journalledIn(t, s)
		g, j := c.attempt()
		task, err := enqueueTask(g, json.RawMessage(`{"operation":"op"}`))
		if err != nil {
			t.Fatal(err)
		}
		if over { // between its intent and its sending
			do := task.do
			task.do = func(ctx context.Context) (any, error) { cancel(); return do(ctx) }
		}
		if _, err := g.journalled(ctx, schedulerEnqueue, json.RawMessage(`{"operation":"op"}`), task); err == nil {
			t.Error("it was answered")
		}
		want, state, asked := 1, store.EffectIntent, 2
		if over {
			want, state, asked = 0, store.EffectNotDone, 1
		}
		rows, err := c.store.Effects(t.Context(), c.call.Tenant, c.call.ID)
		if open, repeatable := j.Unanswered(); err != nil || open != want || repeatable != want || len(rows) != 1 || rows[0].State != state {
			t.Errorf("over before %t: %d open, %d repeatable, %+v: %v", over, open, repeatable, rows, err)
		}
		c.again()
		g, _ = c.attempt()
		if _, err := g.Serve(t.Context(), schedulerEnqueue, json.RawMessage(`{"operation":"op"}`)); err != nil {
			t.Error(err)
		}
		if len(places) != asked || places[0] != places[len(places)-1] {
			t.Errorf("over before %t: it was asked for under the places %q", over, places)
		}
	}
}
