package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// What tells the second process of [TestAHostThatIsKilled] where to die, and in which
// directory.
const (
	diesAt = "MORTISE_TEST_DIES_AT"
	diesIn = "MORTISE_TEST_DIES_IN"
)

// TestAHostThatIsKilled: a host is killed at each place between a message and its
// answer, as if the power had gone. The next one sends exactly the answer that is
// owed, under the key that the first one had.
func TestAHostThatIsKilled(t *testing.T) {
	t.Parallel()
	if at := os.Getenv(diesAt); at != "" {
		dies(t, at, os.Getenv(diesIn))
		return
	}
	for at, want := range map[string]struct {
		text  string
		sends int // that the channel sees, in both hosts
	}{
		"received": {"yes", 1},
		"thinking": {"interrupted", 1},
		"acting":   {"interrupted", 1},
		"answered": {"yes", 1},
		"sending":  {"yes", 1},
		"sent":     {"yes", 2},
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAHostThatIsKilled$")
			child.Env = append(os.Environ(), diesAt+"="+at, diesIn+"="+dir)
			out, err := child.CombinedOutput()
			if state, is := child.ProcessState.Sys().(syscall.WaitStatus); !is || state.Signal() != syscall.SIGKILL {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			d := deskIn(t, dir)
			d.sendsInto(dir)
			now := time.Now().Add(3 * time.Minute) // its leases are over
			d.Options.Now = func() time.Time { return now }
			for range 3 { // whatever it finds, it is done after the first
				d.sweep()
			}
			var keys []string
			for _, line := range sends(t, dir) {
				key, text, _ := strings.Cut(line, " ")
				if keys = append(keys, key); !strings.Contains(text, want.text) {
					t.Errorf("sent: %s", line)
				}
			}
			if len(keys) != want.sends || len(slices.Compact(keys)) != 1 {
				t.Errorf("sent under the keys %q", keys)
			}
			if rows, err := d.Store.Outbox(t.Context(), store.OutboxFilter{Tenant: "t", Limit: 10}); err != nil || len(rows) != 0 {
				t.Errorf("there remain %+v, %v", rows, err)
			}
			if waiting, err := d.Waiting(t.Context(), 5); err != nil || len(waiting) != 0 {
				t.Errorf("there wait %+v, %v", waiting, err)
			}
			asked := len(d.heard())
			if wanted := map[bool]int{true: 1}[at == "received"]; asked != wanted {
				t.Errorf("the model was asked %d times once more, want %d", asked, wanted)
			}
		})
	}
}

// dies is the host that is killed.
func dies(t *testing.T, at, dir string) {
	kill := func(place string) {
		if place == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			testwait.Block() // the signal is on its way
		}
	}
	d := deskIn(t, dir)
	d.hire("shop", agent.Settings{MaxSteps: 2, Channels: map[string]agent.Channel{"web": {Scheme: webhook.Standard, Secret: "s", Reply: "web/send"}}})
	d.equip("shop", "watch", event.Subscription{Event: event.ChannelMessageOut, Transform: func(context.Context, *event.Payload) (*event.Payload, error) {
		kill("answered")
		return nil, nil
	}})
	d.think(func(context.Context, llm.Conversation) llm.Move { kill("thinking"); return wish("do", "{}", "u") })
	d.sendsInto(dir)
	send := d.do
	d.do = func(ctx context.Context, call plugin.Call) (plugin.Result, error) {
		if call.Operation != "web/send" {
			kill("acting")
			return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage("{}")}, nil
		}
		kill("sending")
		res, err := send(ctx, call)
		kill("sent")
		return res, err
	}
	session := d.got("m1", `{"text":"hi","sender":"U1"}`)
	kill("received")
	if err := d.Advance(t.Context(), "t", session); err != nil {
		t.Error(err)
	}
}

// deskIn returns a desk on the store in a directory.
func deskIn(t *testing.T, dir string) *desk {
	t.Helper()
	st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return deskOn(t, st)
}

// sendsInto has the channel's operation write each message to a file, under the key of
// its call: what the channel sees.
func (d *desk) sendsInto(dir string) {
	d.do = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
		var in struct{ Text string }
		if err := json.Unmarshal(call.Input, &in); err != nil {
			return plugin.Result{Status: plugin.Failed}, err
		}
		f, err := os.OpenFile(filepath.Join(dir, "sent"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "%s %s\n", call.Key, in.Text)
			err = errors.Join(err, f.Close())
		}
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage("{}")}, err
	}
}

func sends(t *testing.T, dir string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "sent"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' })
}

// sweep does what waits, as a host that serves does from time to time.
func (d *desk) sweep() {
	d.t.Helper()
	ctx := context.Background()
	waiting, err := d.Waiting(ctx, 100)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range waiting {
		if err := d.Advance(ctx, c.Tenant, c.SessionID); err != nil {
			d.t.Error(err)
		}
	}
	for on := true; on; {
		rows, err := d.Store.Outbox(ctx, store.OutboxFilter{Tenant: "t", Due: d.Now(), Limit: 100})
		if err != nil {
			d.t.Fatal(err)
		}
		on = false
		for _, row := range rows {
			if !agent.IsReply(&row) {
				continue
			}
			more, err := d.SendReply(ctx, row)
			if err != nil {
				d.t.Error(err)
			}
			on = on || more
		}
	}
}

// An answer that cannot be sent for now is sent later, before the one after it; one
// that never can be is given up, and holds nothing back.
func TestAnAnswerThatCannotBeSentForNow(t *testing.T) {
	t.Parallel()
	d := channels(t)
	now := time.Now()
	d.Options.Now = func() time.Time { return now }
	fails := plugin.CodeUnavailable
	var sent []string
	d.do = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
		if fails != "" {
			return plugin.Result{Status: plugin.Failed}, plugin.Errorf(fails, "not now")
		}
		d.note(&sent, call.Key)
		return plugin.Result{Status: plugin.Succeeded}, nil
	}
	session := d.got("m1", `{"text":"hi","sender":"U1"}`)
	d.sweep()
	fails = ""
	d.got("m2", `{"text":"hi again","sender":"U1"}`)
	d.sweep() // the second waits behind the first
	if len(sent) != 0 {
		t.Errorf("sent %q too early", sent)
	}
	now = now.Add(10 * time.Second)
	d.sweep()
	if want := []string{"reply:" + session + ":1", "reply:" + session + ":4"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	fails = plugin.CodePolicyDenied
	d.got("m3", `{"text":"no","sender":"U1"}`)
	d.sweep()
	fails = ""
	d.got("m4", `{"text":"yes","sender":"U1"}`)
	d.sweep()
	if len(sent) != 3 {
		t.Errorf("sent %q", sent)
	}
	fails = plugin.CodeUnavailable
	before := len(d.called("web/send"))
	d.got("m5", `{"text":"never","sender":"U1"}`)
	for range 20 {
		d.sweep()
		now = now.Add(2 * time.Hour)
	}
	if n := len(d.called("web/send")) - before; n != 6 {
		t.Errorf("it was tried %d times", n)
	}
}

// A turn that goes on elsewhere is not taken for interrupted, however long it takes;
// what a suspended host says after another took over is not sent.
func TestALongTurnIsNotInterrupted(t *testing.T) {
	t.Parallel()
	d := channels(t)
	other := deskOn(t, d.Store)
	later := func(by time.Duration) {
		now := time.Now().Add(by)
		other.Options.Now = func() time.Time { return now }
	}
	// The goroutine that renews the lease of the turn may run at any moment; with this
	// clock it writes what the test writes.
	var ahead atomic.Int64
	d.Options.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	session := d.got("m1", `{"text":"hi","sender":"U1"}`)
	d.think(func(ctx context.Context, _ llm.Conversation) llm.Move {
		ahead.Store(int64(time.Hour))
		d.write(func(tx store.Tx) error { // as its own goroutine does
			_, err := tx.KeepTurn("t", session, leaseOf(t, tx, session), time.Now().Add(time.Hour))
			return err
		})
		later(40 * time.Second)
		other.sweep()
		if n := len(other.called("web/send")); n != 0 {
			t.Errorf("while it goes on, %d answers were sent", n)
		}
		ahead.Store(-int64(time.Hour))
		d.write(func(tx store.Tx) error { // then it is suspended for long
			_, err := tx.KeepTurn("t", session, leaseOf(t, tx, session), time.Now())
			return err
		})
		later(2 * time.Minute)
		other.sweep()
		return llm.Move{Text: "too late"}
	})
	if err := d.Advance(t.Context(), "t", session); err != nil {
		t.Error(err)
	}
	sent := other.called("web/send")
	if len(sent) != 1 || !strings.Contains(string(sent[0].Input), "interrupted") || len(d.called("web/send")) != 0 {
		t.Errorf("sent %+v and %+v", sent, d.called("web/send"))
	}
}
