package event

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A placed error knows where it happened, as those of scripts do.
type placed struct{ error }

func (placed) Stack() string { return "index.ts:4:10" }

func TestPluginErrorSaysWhoseWhereAndWhy(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	var told []string
	on(t, bus, Subscription{Event: PluginError, Listen: func(_ context.Context, p *Payload) error { told = append(told, p.Text()); return nil }})
	on(t, bus, Subscription{Event: ToolAfter, Listen: func(context.Context, *Payload) error { return errBroken }})
	on(t, bus, Subscription{Event: ToolAfter, Plugin: "placed", Listen: func(context.Context, *Payload) error {
		return fmt.Errorf("handler: %w", placed{errBroken})
	}})
	on(t, bus, Subscription{Event: ToolAfter, Plugin: "panics", Listen: func(context.Context, *Payload) error { panic("oh") }})
	if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
		t.Fatal(err)
	}
	bus.Close()
	if len(told) != 3 {
		t.Fatalf("told %d times: %q", len(told), told)
	}
	for i, want := range []string{
		`{"pluginId":"<unknown>","event":"tool.after@v1","message":"broken","stack":""}`,
		`{"pluginId":"placed","event":"tool.after@v1","message":"handler: broken","stack":"index.ts:4:10"}`,
	} {
		if told[i] != want {
			t.Errorf("got %s, want %s", told[i], want)
		}
	}
	p := payload(t, told[2])
	if p.String("pluginId") != "panics" || p.String("message") != "panic: oh" || !strings.Contains(p.String("stack"), "failure_test.go") {
		t.Errorf("a panic: %s", p.Text())
	}
}

func TestPluginErrorIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	release := make(chan struct{})
	var told []string
	on(t, bus, Subscription{Event: PluginError, Listen: func(_ context.Context, p *Payload) error {
		<-release
		told = append(told, p.String("message"))
		return nil
	}})
	n := 0
	on(t, bus, Subscription{Event: ToolAfter, Listen: func(context.Context, *Payload) error { n++; return fmt.Errorf("failure %d", n) }})
	for range maxQueue + 50 { // returns although no failure has been delivered yet; what exceeds the queue is dropped
		if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	bus.Close()
	if len(told) < maxQueue || len(told) > maxQueue+1 {
		t.Fatalf("told %d times", len(told))
	}
	for i, message := range told[:maxQueue] { // one more found room, whichever, if the first was taken out meanwhile
		if want := fmt.Sprintf("failure %d", i+1); message != want {
			t.Fatalf("got %s, want %s", message, want)
		}
	}
}

func TestFailingPluginErrorHandlerEmitsNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Skip, Fail} {
		bus := newTestBus(t)
		calls := 0
		on(t, bus, Subscription{Event: PluginError, Plugin: "worse", Priority: new(float64(200)), Mode: mode, Listen: func(context.Context, *Payload) error { calls++; return errBroken }})
		told := pluginErrors(t, bus)
		on(t, bus, Subscription{Event: ToolAfter, Plugin: "bad", Listen: func(context.Context, *Payload) error { return errBroken }})
		if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
			t.Fatal(err)
		}
		bus.Close()
		if want := []string{"bad tool.after@v1: broken"}; calls != 1 || !slices.Equal(*told, want) {
			t.Errorf("mode %s: called %d times, told %q", mode, calls, *told)
		}
	}
}

// TestPluginErrorEndsThroughOtherEventsToo has a handler of plugin.error@v1 emit
// an event whose handler fails, which is told of again.
func TestPluginErrorEndsThroughOtherEventsToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := newTestBus(t)
		calls := 0
		on(t, bus, Subscription{Event: PluginError, Listen: func(ctx context.Context, p *Payload) error { calls++; return bus.Emit(ctx, ToolAfter, p) }})
		on(t, bus, Subscription{Event: ToolAfter, Listen: func(context.Context, *Payload) error { return errBroken }})
		if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); bus.teller != nil {
			t.Fatal("it is still being told")
		}
		if calls == 0 || calls > MaxDepth {
			t.Errorf("told %d times", calls)
		}
	})
}

func TestFailuresAreLogged(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	bus := NewBus("support", Options{Log: slog.New(slog.NewTextHandler(&text, nil))})
	on(t, bus, Subscription{Event: ToolAfter, Plugin: "bad", Name: "audit", Listen: func(context.Context, *Payload) error { return errBroken }})
	if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
		t.Fatal(err)
	}
	bus.Close()
	for _, want := range []string{"level=WARN", "was skipped", "agent=support", "plugin=bad", "event=tool.after@v1", "handler=audit", "error=broken"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log has no %s: %s", want, text.String())
		}
	}
}

func TestWhatIsToldIsBounded(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	var told *Payload
	on(t, bus, Subscription{Event: PluginError, Listen: func(_ context.Context, p *Payload) error { told = p; return nil }})
	on(t, bus, Subscription{Event: ToolBefore, Veto: func(context.Context, *Payload) (Verdict, error) {
		return Verdict{}, errors.New(strings.Repeat("é", MaxPayload))
	}})
	on(t, bus, Subscription{Event: ToolBefore, Veto: func(context.Context, *Payload) (Verdict, error) {
		return Verdict{Reason: strings.Repeat("é", MaxPayload)}, nil
	}})
	v, err := bus.Veto(t.Context(), ToolBefore, payload(t, `{}`))
	if err != nil || v.Allow || len(v.Reason) != maxReason {
		t.Errorf("a reason of %d bytes, %v", len(v.Reason), err)
	}
	bus.Close()
	if told == nil || len(told.String("message")) != maxMessage {
		t.Errorf("told %v", told)
	}
}

func TestDeadlineOfOneHandler(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(context.Context, chan struct{}){
		"heeded":  func(ctx context.Context, _ chan struct{}) { <-ctx.Done() },
		"ignored": func(_ context.Context, release chan struct{}) { <-release },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // a handler that heeds its deadline is never late
				bus := newTestBus(t)
				told := pluginErrors(t, bus)
				release := make(chan struct{})
				slow := func(ctx context.Context, _ *Payload) (Verdict, error) {
					wait(ctx, release)
					return Verdict{Reason: "too late"}, nil
				}
				on(t, bus, Subscription{Event: ToolBefore, Plugin: "slow", Deadline: 20 * time.Millisecond, Veto: slow})
				quick := false
				hear := func(ctx context.Context, p *Payload) (Verdict, error) {
					_, quick = ctx.Deadline()
					return Verdict{Allow: true, Payload: p.With("seen", "true")}, nil
				}
				on(t, bus, Subscription{Event: ToolBefore, Plugin: "quick", Deadline: time.Minute, Veto: hear})
				v, err := bus.Veto(t.Context(), ToolBefore, payload(t, `{}`))
				if err != nil || !v.Allow || !quick || v.Payload.Text() != `{"seen":true}` || len(v.Failed) != 1 {
					t.Fatalf("%+v, %v", v, err)
				}
				wantCode(t, v.Failed[0].Err, plugin.CodeTimeout)

				v, err = bus.Veto(t.Context(), ToolBefore, payload(t, `{}`))
				if err != nil || len(v.Failed) != 1 {
					t.Fatalf("%+v, %v", v, err)
				}
				if name == "ignored" { // it is not called again while it is at work
					wantCode(t, v.Failed[0].Err, plugin.CodeOverloaded)
				} else {
					wantCode(t, v.Failed[0].Err, plugin.CodeTimeout)
				}
				close(release)
				bus.Close()
				if len(*told) != 2 || !strings.HasPrefix((*told)[0], "slow tool.before@v1: timeout: it did not answer within its deadline of 20ms") {
					t.Errorf("told %q", *told)
				}
			})
		})
	}
}

func TestDeadlinesForEachShape(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	var heard []string
	on(t, bus, Subscription{Event: ToolAfter, Deadline: time.Minute, Listen: says(&heard, "heard")})
	on(t, bus, Subscription{Event: ToolAfter, Deadline: time.Minute, Mode: Fail, Listen: func(context.Context, *Payload) error { panic(errBroken) }})
	on(t, bus, Subscription{Event: ChannelMessageIn, Deadline: time.Minute, Transform: appends("a")})
	if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); plugin.CodeOf(err) != plugin.CodeHookFailed || !errors.Is(err, errBroken) || len(heard) != 1 {
		t.Errorf("%v, %v", heard, err)
	}
	if p, err := bus.Transform(t.Context(), ChannelMessageIn, payload(t, `{"text":"-"}`)); err != nil || p.String("text") != "-a" {
		t.Errorf("%v, %v", p, err)
	}
}

// TestCallerWhoGivesUpIsNotThePluginsFault: no failure is reported, and silence
// is no allowance.
func TestCallerWhoGivesUpIsNotThePluginsFault(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{0, time.Minute} {
		bus := newTestBus(t)
		told := pluginErrors(t, bus)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the user left")
		on(t, bus, Subscription{Event: ToolBefore, Plugin: "good", Deadline: deadline, Veto: func(ctx context.Context, _ *Payload) (Verdict, error) {
			cancel(why)
			<-ctx.Done()
			return Verdict{}, ctx.Err()
		}})
		if v, err := bus.Veto(ctx, ToolBefore, payload(t, `{}`)); v.Allow || !errors.Is(err, why) {
			t.Errorf("%+v, %v", v, err)
		}
		bus.Close()
		if len(*told) > 0 {
			t.Errorf("told %q", *told)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	bus := NewBus("support", Options{})
	off := on(t, bus, Subscription{Event: ToolBefore, Veto: allows})
	bus.Close()
	bus.Close()
	off()
	bus.Remove("")
	_, err := bus.On(Subscription{Event: ToolBefore, Veto: allows})
	wantCode(t, err, plugin.CodeUnavailable)
	p := payload(t, `{}`)
	wantCode(t, bus.Emit(t.Context(), ToolAfter, p), plugin.CodeUnavailable)
	_, err = bus.Transform(t.Context(), ChannelMessageIn, p)
	wantCode(t, err, plugin.CodeUnavailable)
	v, err := bus.Veto(t.Context(), ToolBefore, p)
	wantCode(t, err, plugin.CodeUnavailable)
	if v.Allow || bus.Heard(ToolBefore) {
		t.Error("a closed bus allows")
	}
}

// TestCloseDuringADispatch: a guard that was not asked has not allowed anything.
func TestCloseDuringADispatch(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	on(t, bus, Subscription{Event: ToolBefore, Veto: func(context.Context, *Payload) (Verdict, error) { bus.Close(); return Verdict{Allow: true}, nil }})
	on(t, bus, Subscription{Event: ToolBefore, Veto: func(context.Context, *Payload) (Verdict, error) {
		t.Error("called after Close")
		return Verdict{}, nil
	}})
	v, err := bus.Veto(t.Context(), ToolBefore, payload(t, `{}`))
	wantCode(t, err, plugin.CodeUnavailable)
	if v.Allow {
		t.Error("allowed")
	}
}

func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, event := range map[string]string{"a handler with a deadline": ToolAfter, "a handler of plugin.error@v1": PluginError} {
			bus := NewBus("support", Options{Drain: 30 * time.Millisecond})
			release, ended := make(chan struct{}), make(chan struct{})
			s := Subscription{Event: event, Listen: func(context.Context, *Payload) error { <-release; close(ended); return nil }}
			if event == ToolAfter {
				s.Deadline = time.Millisecond
			} else {
				on(t, bus, Subscription{Event: ToolAfter, Listen: func(context.Context, *Payload) error { return errBroken }})
			}
			on(t, bus, s)
			if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			bus.Close()
			if took := time.Since(start); took < 25*time.Millisecond || took > 5*time.Second {
				t.Errorf("%s: Close took %s", name, took)
			}
			close(release)
			<-ended
		}
	})
}

func TestCloseWaitsForHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := NewBus("support", Options{Drain: time.Minute})
		ended := false
		on(t, bus, Subscription{Event: ToolAfter, Deadline: time.Millisecond, Listen: func(context.Context, *Payload) error {
			<-time.After(3 * grace)
			ended = true
			return nil
		}})
		if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
			t.Fatal(err)
		}
		bus.Close()
		if !ended {
			t.Error("Close did not wait")
		}
	})
}
