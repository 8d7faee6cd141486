package event

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// TestAnAnswerThatIsNoPayloadIsAFailureOfItsHandler has a handler of each event
// that may be changed take each member of the example away, and put each wrong
// type in its place, at every depth. Skipped, the payload stays what it was; in
// the mode fail the dispatch ends, and the error names plugin and member.
func TestAnAnswerThatIsNoPayloadIsAFailureOfItsHandler(t *testing.T) {
	t.Parallel()
	for i := range Catalogue {
		e := &Catalogue[i]
		if e.Shape == Listener {
			continue
		}
		whole := payload(t, e.Example)
		for _, f := range e.Fields {
			if _, has := whole.Field(f.Name); !has {
				continue
			}
			wrong := map[string]*Payload{}
			if !f.Optional {
				wrong[f.Name+" is missing"] = whole.Without(f.Name)
				wrong["nothing at all"] = payload(t, "{}")
			}
			for _, raw := range []string{"null", "1", `"odd"`, "true", "[]", "{}", "[1]", "[{}]", `[{"role":"unknown","content":"x"}]`,
				`[{"role":"tool","content":[]}]`, `[{"role":"tool","content":"","toolResults":[{"id":1}]}]`, `[{"key":"a","content":1}]`} {
				if f.problem(f.Name, []byte(raw)) != "" {
					wrong[f.Name] = whole.With(f.Name, raw)
					refusedAnswer(t, e, whole, whole.With(f.Name, raw), f.Name)
				}
			}
			if len(wrong) == 0 {
				t.Errorf("%s.%s takes anything", e.Name, f.Name)
			}
			for _, answer := range wrong {
				refusedAnswer(t, e, whole, answer, "")
			}
		}
	}
}

// refusedAnswer has a handler give an answer in both modes.
func refusedAnswer(t *testing.T, e *Event, whole, answer *Payload, member string) {
	t.Helper()
	for _, mode := range []Mode{Skip, Fail} {
		bus := newTestBus(t)
		told := pluginErrors(t, bus)
		on(t, bus, answers(e, "bad", mode, answer))
		got, err := dispatched(t, bus, e, whole)
		switch {
		case mode == Skip && (err != nil || got != whole):
			t.Errorf("%s answered %s: %v, %v; it was to be skipped", e.Name, answer.Text(), got, err)
		case mode == Fail && (plugin.CodeOf(err) != plugin.CodeHookFailed || !strings.Contains(err.Error(), "bad") || !strings.Contains(err.Error(), member)):
			t.Errorf("%s answered %s: %v; it was to fail and name bad and %q", e.Name, answer.Text(), err, member)
		}
		bus.Close()
		if mode == Skip && (len(*told) != 1 || !strings.HasPrefix((*told)[0], "bad "+e.Name) || !strings.Contains((*told)[0], member)) {
			t.Errorf("%s answered %s: plugin.error is %q", e.Name, answer.Text(), *told)
		}
	}
}

// answers is a handler that always answers the same.
func answers(e *Event, name string, mode Mode, answer *Payload) Subscription {
	s := Subscription{Event: e.Name, Plugin: name, Mode: mode}
	if e.Shape == Veto {
		s.Veto = func(context.Context, *Payload) (Verdict, error) { return Verdict{Allow: true, Payload: answer}, nil }
	} else {
		s.Transform = func(context.Context, *Payload) (*Payload, error) { return answer, nil }
	}
	return s
}

// dispatched emits an event as its shape asks, and returns what is carried on.
func dispatched(t *testing.T, bus *Bus, e *Event, p *Payload) (*Payload, error) {
	t.Helper()
	if e.Shape != Veto {
		return bus.Transform(t.Context(), e.Name, p)
	}
	v, err := bus.Veto(t.Context(), e.Name, p)
	if v.Payload != nil {
		return v.Payload, err
	}
	return p, err
}

func TestAnAnswerWithMembersOfItsOwnAndChangedOnesFits(t *testing.T) {
	t.Parallel()
	for i := range Catalogue {
		e := &Catalogue[i]
		if e.Shape == Listener {
			continue
		}
		whole := payload(t, e.Example)
		for _, answer := range []*Payload{whole, payload(t, e.Example), whole.With("more", `[1,{"a":null}]`)} {
			bus := newTestBus(t)
			on(t, bus, answers(e, "good", Fail, answer))
			if got, err := dispatched(t, bus, e, whole); err != nil || got.Text() != answer.Text() {
				t.Errorf("%s: %v, %v", e.Name, got, err)
			}
		}
	}
}

func TestAPriorityMayBeAnyFiniteNumber(t *testing.T) {
	t.Parallel()
	bus := newTestBus(t)
	var heard []string
	for _, p := range []float64{100, 99.5, -0.25, 1e12, 99.25} {
		on(t, bus, Subscription{Event: ToolAfter, Priority: new(p), Listen: says(&heard, fmt.Sprint(p))})
	}
	if err := bus.Emit(t.Context(), ToolAfter, payload(t, "{}")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(heard, " "); got != "-0.25 99.25 99.5 100 1e+12" {
		t.Errorf("the order is %s", got)
	}
	for _, p := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := bus.On(Subscription{Event: ToolAfter, Priority: &p, Listen: says(&heard, "")}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("the priority %v: %v", p, err)
		}
	}
}
