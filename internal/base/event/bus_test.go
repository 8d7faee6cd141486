package event

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

func TestHandlersRunInOrderOfPriority(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	var heard []string
	on(t, bus, Subscription{Event: ToolAfter, Priority: new(float64(200)), Listen: says(&heard, "200")})
	on(t, bus, Subscription{Event: ToolAfter, Priority: new(float64(0)), Listen: says(&heard, "0")})
	on(t, bus, Subscription{Event: ToolAfter, Listen: says(&heard, "default")})
	on(t, bus, Subscription{Event: ToolAfter, Priority: new(float64(101)), Listen: says(&heard, "101")})
	on(t, bus, Subscription{Event: ToolAfter, Priority: new(float64(99)), Listen: says(&heard, "99")})
	on(t, bus, Subscription{Event: ToolAfter, Priority: new(float64(-1)), Listen: says(&heard, "-1")})
	on(t, bus, Subscription{Event: ToolAfter, Priority: new(float64(math.MaxInt)), Listen: says(&heard, "last")})
	on(t, bus, Subscription{Event: ToolAfter, Priority: new(float64(math.MinInt)), Listen: says(&heard, "first")})
	on(t, bus, Subscription{Event: ToolAfter, Priority: new(float64(math.MaxInt)), Listen: says(&heard, "after it")})
	if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(heard, " "), "first -1 0 99 default 101 200 last after it"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTiesAreBrokenByRegistration(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	var heard []string
	for _, name := range []string{"first", "second", "third"} {
		on(t, bus, Subscription{Event: ToolAfter, Plugin: name, Priority: new(float64(100)), Listen: says(&heard, name)})
	}
	on(t, bus, Subscription{Event: ToolAfter, Listen: says(&heard, "default, fourth")})
	if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(heard, " "), "first second third default, fourth"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTransformThreadsThePayload(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	on(t, bus, Subscription{Event: ChannelMessageIn, Priority: new(float64(3)), Transform: appends("c")})
	on(t, bus, Subscription{Event: ChannelMessageIn, Priority: new(float64(1)), Transform: appends("a")})
	on(t, bus, Subscription{Event: ChannelMessageIn, Priority: new(float64(2)), Transform: appends("b")})
	p, err := bus.Transform(t.Context(), ChannelMessageIn, payload(t, `{"text":"-"}`))
	if err != nil || p.String("text") != "-abc" {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestUndefinedLeavesThePayloadAsItWas(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	on(t, bus, Subscription{Event: ChannelMessageIn, Transform: func(context.Context, *Payload) (*Payload, error) { return nil, nil }})
	was := payload(t, `{"text":"-"}`)
	if p, err := bus.Transform(t.Context(), ChannelMessageIn, was); err != nil || p != was {
		t.Errorf("got %v, %v, want the very payload that was given", p, err)
	}
	on(t, bus, Subscription{Event: ChannelMessageIn, Priority: new(float64(1)), Transform: appends("a")})
	if p, err := bus.Transform(t.Context(), ChannelMessageIn, was); err != nil || p.String("text") != "-a" {
		t.Errorf("got %v, %v, want what the handler before it returned", p, err)
	}
}

func TestFirstDenialStops(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	var heard []string
	veto := func(name string, v Verdict) Subscription {
		return Subscription{Event: ToolBefore, Plugin: name, Veto: func(context.Context, *Payload) (Verdict, error) {
			heard = append(heard, name)
			return v, nil
		}}
	}
	on(t, bus, veto("yes", Verdict{Allow: true, By: "another plugin"}))
	on(t, bus, veto("no", Verdict{Reason: "not on a Sunday", By: "another plugin", Payload: payload(t, `{}`)}))
	on(t, bus, veto("later", Verdict{Allow: true}))
	v, err := bus.Veto(t.Context(), ToolBefore, payload(t, `{}`))
	if err != nil || v.Allow || v.Reason != "not on a Sunday" || v.By != "no" || v.Payload != nil || v.Failed != nil {
		t.Errorf("got %+v, %v", v, err)
	}
	if !slices.Equal(heard, []string{"yes", "no"}) {
		t.Errorf("called: %v", heard)
	}
}

func TestAllowingVetoRewrites(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	rewrite := func(letter string) func(context.Context, *Payload) (Verdict, error) {
		return func(ctx context.Context, p *Payload) (Verdict, error) {
			p, err := appends(letter)(ctx, p)
			return Verdict{Allow: true, Payload: p}, err
		}
	}
	was := payload(t, `{"text":"-"}`)
	on(t, bus, Subscription{Event: ToolBefore, Veto: allows})
	if v, err := bus.Veto(t.Context(), ToolBefore, was); err != nil || !v.Allow || v.Payload != nil {
		t.Fatalf("got %+v, %v, want an allowance without a change", v, err)
	}
	on(t, bus, Subscription{Event: ToolBefore, Veto: rewrite("a")})
	on(t, bus, Subscription{Event: ToolBefore, Veto: allows})
	on(t, bus, Subscription{Event: ToolBefore, Veto: rewrite("b")})
	v, err := bus.Veto(t.Context(), ToolBefore, was)
	if err != nil || !v.Allow || v.Payload.String("text") != "-ab" || was.String("text") != "-" {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestSkippedFailure has one handler fail between two that do not, for each
// shape and each way to fail.
func TestSkippedFailure(t *testing.T) {
	t.Parallel()
	for way, fail := range map[string]func() error{
		"error": func() error { return errBroken },
		"panic": func() error { panic(errBroken) },
	} {
		for _, mode := range []Mode{"", Skip} {
			t.Run(fmt.Sprintf("%s, mode %q", way, mode), func(t *testing.T) {
				t.Parallel()
				bus := newTestBus(t)
				told := pluginErrors(t, bus)
				var heard []string
				on(t, bus, Subscription{Event: ToolAfter, Listen: says(&heard, "before")})
				on(t, bus, Subscription{Event: ToolAfter, Plugin: "bad", Mode: mode, Listen: func(context.Context, *Payload) error { return fail() }})
				on(t, bus, Subscription{Event: ToolAfter, Listen: says(&heard, "after")})
				on(t, bus, Subscription{Event: ChannelMessageIn, Transform: appends("a")})
				on(t, bus, Subscription{Event: ChannelMessageIn, Plugin: "bad", Mode: mode, Transform: func(_ context.Context, p *Payload) (*Payload, error) { return p.With("text", "0"), fail() }})
				on(t, bus, Subscription{Event: ChannelMessageIn, Transform: appends("b")})
				on(t, bus, Subscription{Event: ToolBefore, Veto: allows})
				on(t, bus, Subscription{Event: ToolBefore, Plugin: "bad", Mode: mode, ModeSaid: mode != "", Veto: func(_ context.Context, p *Payload) (Verdict, error) { return Verdict{Payload: p}, fail() }})
				on(t, bus, Subscription{Event: ToolBefore, Veto: allows})

				p := payload(t, `{"text":"-"}`)
				if err := bus.Emit(t.Context(), ToolAfter, p); err != nil || !slices.Equal(heard, []string{"before", "after"}) {
					t.Errorf("emit: %v, heard by %v", err, heard)
				}
				if changed, err := bus.Transform(t.Context(), ChannelMessageIn, p); err != nil || changed.String("text") != "-ab" {
					t.Errorf("transform: %v, %v", changed, err)
				}
				v, err := bus.Veto(t.Context(), ToolBefore, p)
				if err != nil || !v.Allow || v.Payload != nil || len(v.Failed) != 1 {
					t.Fatalf("veto: %+v, %v, want an allowance without change", v, err)
				}
				if f := v.Failed[0]; f.Plugin != "bad" || f.Event != ToolBefore || !errors.Is(f.Err, errBroken) || f.Guards != (mode == "") {
					t.Errorf("veto: the failure is %+v", f)
				}
				bus.Close()
				message := map[string]string{"error": "broken", "panic": "panic: broken"}[way]
				if want := []string{"bad tool.after@v1: " + message, "bad channel.message.in@v1: " + message, "bad tool.before@v1: " + message}; !slices.Equal(*told, want) {
					t.Errorf("plugin.error@v1 told %q, want %q", *told, want)
				}
			})
		}
	}
}

// TestFailModeEndsTheDispatch has a handler fail that asked to, for each shape
// and each way to fail.
func TestFailModeEndsTheDispatch(t *testing.T) {
	t.Parallel()
	for way, fail := range map[string]func() error{
		"error": func() error { return errBroken },
		"panic": func() error { panic(errBroken) },
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			bus := newTestBus(t)
			told := pluginErrors(t, bus)
			later := func() { t.Error("a later handler was called") }
			on(t, bus, Subscription{Event: ToolAfter, Plugin: "strict", Mode: Fail, ModeSaid: true, Listen: func(context.Context, *Payload) error { return fail() }})
			on(t, bus, Subscription{Event: ToolAfter, Listen: func(context.Context, *Payload) error { later(); return nil }})
			on(t, bus, Subscription{Event: ChannelMessageIn, Plugin: "strict", Mode: Fail, Transform: func(context.Context, *Payload) (*Payload, error) { return nil, fail() }})
			on(t, bus, Subscription{Event: ChannelMessageIn, Transform: func(context.Context, *Payload) (*Payload, error) { later(); return nil, nil }})
			on(t, bus, Subscription{Event: ToolBefore, Plugin: "strict", Mode: Fail, Veto: func(context.Context, *Payload) (Verdict, error) { return Verdict{Allow: true}, fail() }})
			on(t, bus, Subscription{Event: ToolBefore, Veto: func(context.Context, *Payload) (Verdict, error) { later(); return Verdict{Allow: true}, nil }})
			p := payload(t, `{}`)
			check := func(shape string, err error) {
				if plugin.CodeOf(err) != plugin.CodeHookFailed || !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "plugin strict failed on") {
					t.Errorf("%s: %v", shape, err)
				}
			}
			check("emit", bus.Emit(t.Context(), ToolAfter, p))
			_, err := bus.Transform(t.Context(), ChannelMessageIn, p)
			check("transform", err)
			v, err := bus.Veto(t.Context(), ToolBefore, p)
			check("veto", err)
			if v.Allow || len(v.Failed) != 1 || !v.Failed[0].Guards {
				t.Errorf("veto: %+v", v)
			}
			bus.Close()
			if len(*told) > 0 {
				t.Errorf("the caller has the error; plugin.error@v1 told %q as well", *told)
			}
		})
	}
}

func TestOtherPairingsNameTheRightMethod(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	p := payload(t, `{}`)
	methods := map[string]func(string) error{
		"emit":      func(event string) error { return bus.Emit(t.Context(), event, p) },
		"transform": func(event string) error { _, err := bus.Transform(t.Context(), event, p); return err },
		"veto": func(event string) error {
			v, err := bus.Veto(t.Context(), event, p)
			if v.Allow != (err == nil) {
				t.Errorf("%s: %+v, %v", event, v, err)
			}
			return err
		},
	}
	functions := map[Shape]Subscription{
		Listener:  {Listen: says(new([]string), "")},
		Transform: {Transform: appends("")},
		Veto:      {Veto: allows},
	}
	for _, e := range Catalogue {
		right := e.Shape.way().String()
		for name, method := range methods {
			err := method(e.Name)
			if name == right {
				if err != nil {
					t.Errorf("%s of %s: %v", name, e.Name, err)
				}
				continue
			}
			if want := fmt.Sprintf("invalid_input: %s is a %s: use %s, not %s", e.Name, e.Shape, right, name); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		for shape, s := range functions {
			s.Event = e.Name
			off, err := bus.On(s)
			if shape == e.Shape {
				if err != nil {
					t.Error(err)
				} else {
					off()
				}
			} else if plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "give it a "+string(e.Shape)) {
				t.Errorf("a %s on %s: %v", shape, e.Name, err)
			}
		}
	}
	for _, method := range methods {
		wantCode(t, method("tool.before@v9"), plugin.CodeNotFound)
	}
}

func TestWrongSubscriptionsAreRefused(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	listen := says(new([]string), "")
	for want, s := range map[string]Subscription{
		"the newest version is tool.after@v1": {Event: "tool.after@v2", Listen: listen},
		"newest version is tool.before@v1":    {Event: "tool.before", Listen: listen},
		"docs/events.md":                      {Event: "tool.during@v1", Listen: listen},
		"has 0 functions":                     {Event: ToolAfter},
		"has 2 functions":                     {Event: ToolAfter, Listen: listen, Veto: allows},
		"it is skip or fail":                  {Event: ToolAfter, Listen: listen, Mode: "ignore"},
		"has a deadline of -1ns":              {Event: ToolAfter, Listen: listen, Deadline: -1},
		"has a deadline of 1h":                {Event: ToolAfter, Listen: listen, Deadline: time.Hour},
		"names 33 plugins before":             {Event: ToolAfter, Listen: listen, After: make([]string, 33)},
		"a plugin without a name":             {Event: ToolAfter, Listen: listen, After: []string{""}},
	} {
		if off, err := bus.On(s); off != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if bus.Heard(ToolAfter) {
		t.Error("a subscription that was refused is there")
	}
}

func TestNothingIsSharedAmongAgents(t *testing.T) {
	t.Parallel()
	one, two := newTestBus(t), newTestBus(t)
	told := pluginErrors(t, two)
	on(t, one, Subscription{Event: ToolAfter, Plugin: "bad", Listen: func(context.Context, *Payload) error { return errBroken }})
	if two.Heard(ToolAfter) {
		t.Error("the other bus has the handler")
	}
	if err := one.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
		t.Fatal(err)
	}
	one.Close()
	if err := two.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
		t.Errorf("closing one closed the other: %v", err)
	}
	two.Close()
	if len(*told) > 0 {
		t.Errorf("the other bus was told: %v", *told)
	}
}

func TestHeard(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	if bus.Heard(ToolAfter) || bus.Heard("nothing@v1") {
		t.Error("an event without a handler counts as heard")
	}
	off := on(t, bus, Subscription{Event: ToolAfter, Listen: says(new([]string), "")})
	if !bus.Heard(ToolAfter) || bus.Heard(ToolBefore) {
		t.Error("not heard, or heard elsewhere")
	}
	off()
	off()
	if bus.Heard(ToolAfter) {
		t.Error("heard after off")
	}
}

func TestRemovalDuringADispatch(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	var heard []string
	var off func()
	on(t, bus, Subscription{Event: ToolAfter, Plugin: "gone", Listen: func(ctx context.Context, p *Payload) error {
		bus.Remove("gone")
		off()
		on(t, bus, Subscription{Event: ToolAfter, Plugin: "new", Listen: says(&heard, "added during the dispatch")})
		heard = append(heard, "running")
		return nil
	}})
	on(t, bus, Subscription{Event: ToolAfter, Plugin: "gone", Listen: says(&heard, "removed")})
	off = on(t, bus, Subscription{Event: ToolAfter, Plugin: "stays", Listen: says(&heard, "switched off")})
	on(t, bus, Subscription{Event: ToolAfter, Plugin: "stays", Listen: says(&heard, "stays")})
	on(t, bus, Subscription{Event: ToolBefore, Plugin: "gone", Veto: allows})
	emit := func() {
		if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	emit()
	if want := []string{"running", "stays"}; !slices.Equal(heard, want) {
		t.Errorf("got %q, want %q", heard, want)
	}
	if bus.Heard(ToolBefore) {
		t.Error("Remove left a handler of another event")
	}
	heard = nil
	emit()
	if want := []string{"stays", "added during the dispatch"}; !slices.Equal(heard, want) {
		t.Errorf("got %q, want %q", heard, want)
	}
}

func TestHandlersAreBounded(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	called := 0
	listen := func(context.Context, *Payload) error { called++; return nil }
	var offs []func()
	for i := range MaxHandlers {
		offs = append(offs, on(t, bus, Subscription{Event: ToolAfter, Plugin: fmt.Sprint(i / MaxPluginHandlers), Priority: new(float64(i % 7)), Listen: listen}))
	}
	_, err := bus.On(Subscription{Event: AgentStarted, Plugin: "0", Listen: listen})
	wantCode(t, err, plugin.CodeLimitExceeded)
	if !strings.Contains(err.Error(), "plugin 0 has 1000 handlers") {
		t.Error(err)
	}
	_, err = bus.On(Subscription{Event: AgentStarted, Plugin: "another", Listen: listen})
	wantCode(t, err, plugin.CodeLimitExceeded)
	if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil || called != MaxHandlers {
		t.Errorf("%d called, %v", called, err)
	}
	offs[0]()
	on(t, bus, Subscription{Event: AgentStarted, Plugin: "0", Listen: listen})
	bus.Remove("1")
	on(t, bus, Subscription{Event: AgentStarted, Plugin: "another", Listen: listen})
}

func TestEmitsNestToABound(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	for name, derive := range map[string]func(context.Context) context.Context{
		"with the context of the handler": func(ctx context.Context) context.Context { return ctx },
		"with one made of it": func(ctx context.Context) context.Context {
			return context.WithValue(ctx, struct{ name string }{"trace"}, "1")
		},
	} {
		calls := 0
		var deepest error
		off := on(t, bus, Subscription{Event: ToolAfter, Mode: Fail, Listen: func(ctx context.Context, p *Payload) error {
			calls++
			if err := bus.Emit(derive(ctx), ToolAfter, p); plugin.CodeOf(err) == plugin.CodeLimitExceeded && deepest == nil {
				deepest = err
			}
			return nil
		}})
		for range 2 { // the second time with contexts that were kept
			calls, deepest = 0, nil
			if err := bus.Emit(t.Context(), ToolAfter, payload(t, `{}`)); err != nil || calls != MaxDepth || deepest == nil {
				t.Errorf("%s: %d calls, want %d; %v; %v", name, calls, MaxDepth, deepest, err)
			}
		}
		off()
	}
}

func TestDepthCountsOverAllBuses(t *testing.T) {
	t.Parallel()
	one, two := newTestBus(t), newTestBus(t)
	calls := 0
	other := func(bus *Bus) Subscription {
		return Subscription{Event: ToolAfter, Listen: func(ctx context.Context, p *Payload) error { calls++; return bus.Emit(ctx, ToolAfter, p) }}
	}
	on(t, one, other(two))
	on(t, two, other(one))
	if err := one.Emit(context.Background(), ToolAfter, payload(t, `{}`)); err != nil || calls != MaxDepth {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// An odd context cannot be compared with another of its type.
type odd struct {
	context.Context
	list []int
}

func TestAnyContextWillDo(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	type key struct{}
	var seen any
	on(t, bus, Subscription{Event: ToolAfter, Mode: Fail, Listen: func(ctx context.Context, p *Payload) error { seen = ctx.Value(key{}); return nil }})
	for i, ctx := range []context.Context{context.Background(), context.TODO(), odd{t.Context(), nil}, odd{t.Context(), nil}, context.WithValue(t.Context(), key{}, 4), context.WithValue(t.Context(), key{}, 5)} {
		seen = nil
		if err := bus.Emit(ctx, ToolAfter, payload(t, `{}`)); err != nil || seen != ctx.Value(key{}) {
			t.Errorf("%d: the handler saw %v, %v", i, seen, err)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) { // not parallel: allocations are counted for the whole process
	bus := newTestBus(t)
	p := payload(t, `{}`)
	ctx := t.Context()
	run := func() {
		if err := bus.Emit(ctx, ToolAfter, p); err != nil {
			t.Fatal(err)
		}
		if _, err := bus.Transform(ctx, PromptAssemble, p); err != nil {
			t.Fatal(err)
		}
		if v, err := bus.Veto(ctx, ToolBefore, p); err != nil || !v.Allow {
			t.Fatal(v, err)
		}
	}
	for n := range 3 {
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("%v allocations with %d handlers of each", got, n)
		}
		on(t, bus, Subscription{Event: ToolAfter, Listen: func(context.Context, *Payload) error { return nil }})
		on(t, bus, Subscription{Event: PromptAssemble, Transform: func(context.Context, *Payload) (*Payload, error) { return nil, nil }})
		on(t, bus, Subscription{Event: ToolBefore, Veto: allows})
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	p := payload(t, `{"text":"-"}`)
	var told atomic.Int64
	on(t, bus, Subscription{Event: PluginError, Plugin: "watcher", Listen: func(context.Context, *Payload) error { told.Add(1); return nil }})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 100 {
				name := fmt.Sprintf("plugin_%d", (worker+i)%5)
				off, err := bus.On(Subscription{Event: ToolBefore, Plugin: name, Priority: new(float64(i % 3)), Before: []string{"plugin_9"}, Veto: allows})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := bus.On(Subscription{Event: ChannelMessageIn, Plugin: name, Transform: appends("a"), Deadline: time.Minute}); err != nil {
					t.Error(err)
					return
				}
				if _, err := bus.On(Subscription{Event: ToolAfter, Plugin: name, Listen: func(context.Context, *Payload) error { return errBroken }}); err != nil {
					t.Error(err)
					return
				}
				if v, err := bus.Veto(t.Context(), ToolBefore, p); err != nil || !v.Allow {
					t.Errorf("%+v, %v", v, err)
				}
				if changed, err := bus.Transform(t.Context(), ChannelMessageIn, p); err != nil || strings.Trim(changed.String("text"), "a") != "-" {
					t.Errorf("%v, %v", changed, err)
				}
				if err := bus.Emit(t.Context(), ToolAfter, p); err != nil {
					t.Error(err)
				}
				off()
				bus.Remove(name)
			}
		})
	}
	wg.Wait()
	bus.Close()
	if bus.total != 0 || len(bus.counts) != 0 {
		t.Errorf("%d handlers are counted, %v", bus.total, bus.counts)
	}
}

// A plugin whose handler is replaced in the middle of a dispatch is asked all the same: by
// its new handler, once, and with what the others made of the payload.
func TestAHandlerThatIsReplacedWhileOthersAreAskedCounts(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{"veto", "transform"} {
		bus := NewBus("desk", Options{})
		var off func()
		asked := []string{}
		replace := func() {
			var err error
			if _, err = bus.On(guard(shape, "guard", "new", &asked, nil)); err != nil {
				t.Error(err)
			}
			off()
		}
		first := guard(shape, "first", "first", &asked, replace)
		first.Priority = new(float64(1))
		if _, err := bus.On(first); err != nil {
			t.Fatal(err)
		}
		var err error
		if off, err = bus.On(guard(shape, "guard", "old", &asked, nil)); err != nil {
			t.Fatal(err)
		}
		if shape == "veto" {
			v, err := bus.Veto(t.Context(), ToolBefore, payload(t, `{"sessionId":"s","toolName":"p/o","toolCallId":"c","args":{}}`))
			if err != nil || v.Allow || v.By != "guard" {
				t.Errorf("a call went unguarded: %+v, %v", v, err)
			}
		} else if _, err := bus.Transform(t.Context(), PromptAssemble, payload(t, `{"sessionId":"s","prompt":"p"}`)); err != nil {
			t.Error(err)
		}
		if got := strings.Join(asked, " "); got != "first new" {
			t.Errorf("%s: %s were asked", shape, got)
		}
		bus.Close()
	}
}

// guard is a subscription that says that it was asked, and refuses where it is a veto of
// the plugin guard.
func guard(shape, name, says string, asked *[]string, also func()) Subscription {
	hear := func() {
		*asked = append(*asked, says)
		if also != nil {
			also()
		}
	}
	if shape == "veto" {
		return Subscription{Event: ToolBefore, Plugin: name, Veto: func(context.Context, *Payload) (Verdict, error) {
			hear()
			return Verdict{Allow: name != "guard"}, nil
		}}
	}
	return Subscription{Event: PromptAssemble, Plugin: name, Transform: func(context.Context, *Payload) (*Payload, error) {
		hear()
		return nil, nil
	}}
}
