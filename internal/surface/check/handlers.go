package check

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// handlers are what a plugin hears events with.
type handlers struct {
	*checker
	plugin string
	dir    string // of its files
	all    []event.Subscription
	said   *journal // what the plugin logs
}

// longest is how long a handler may take that keeps no deadline itself.
const longest = 10 * time.Second

// check gives every handler the example of its event, alone, and all of them
// together the payloads among the plugin's examples.
func (h *handlers) check(ctx context.Context) error {
	for _, s := range h.all {
		name := h.plugin + ": " + cmp.Or(s.Name, s.Event)
		p, err := event.NewPayload(eventOf(s).Example)
		if err != nil {
			return err
		}
		got, err := h.ask(ctx, s, p)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			err = got.fits(ctx, eventOf(s))
		}
		if err != nil {
			h.tell(name, hears, Fail, story(h.dir, err))
			continue
		}
		h.tell(name, hears, Pass, got.says(p))
	}
	return h.examples(ctx)
}

func (h *handlers) tell(name, check string, outcome Outcome, detail string) {
	if h.said.ignored != "" && outcome == Pass {
		outcome, detail = Warn, h.said.ignored
	}
	h.result(Result{name, check, outcome, detail + h.said.take(), handlerRow})
}

// A reply is what a handler, or a bus of them, made of an event.
type reply struct {
	shape   event.Shape
	took    time.Duration
	verdict event.Verdict
	payload *event.Payload // what is carried from here on; nil where that is what came
}

// ask calls one handler.
func (h *handlers) ask(ctx context.Context, s event.Subscription, p *event.Payload) (r reply, err error) {
	limit := longest
	if s.Deadline > 0 {
		limit = s.Deadline
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	switch r.shape = eventOf(s).Shape; r.shape {
	case event.Transform:
		r.payload, err = s.Transform(ctx, p)
	case event.Veto:
		r.verdict, err = s.Veto(ctx, p)
		r.payload = r.verdict.Payload
	default:
		err = s.Listen(ctx, p)
	}
	r.took = time.Since(begin)
	return r, err
}

// fits holds what is carried on against what the event carries.
func (r reply) fits(ctx context.Context, e *event.Event) error {
	if r.payload == nil {
		return nil
	}
	s, err := schema.Compile(e.Schema())
	if err != nil {
		return err
	}
	if err := s.Check(ctx, []byte(r.payload.Text())); err != nil {
		return plugin.Errorf(plugin.CodeInvalidOutput, "what it returns is not what %s carries: %w", e.Name, err)
	}
	return nil
}

// says tells in words what became of p.
func (r reply) says(p *event.Payload) string {
	what := "it heard it"
	switch {
	case r.shape == event.Veto && !r.verdict.Allow && r.verdict.Reason == "":
		what = "it refused, and gave no reason"
	case r.shape == event.Veto && !r.verdict.Allow:
		what = "it refused: " + r.verdict.Reason
	case r.payload != nil && r.payload.Text() != p.Text():
		what = "it changed " + strings.Join(changed(p, r.payload), ", ")
	case r.shape == event.Veto:
		what = "it allowed it"
	case r.shape == event.Transform:
		what = "it left it as it was"
	}
	return fmt.Sprintf("%s (%.2f ms)", what, float64(r.took)/float64(time.Millisecond))
}

// changed names the members of a payload that another has otherwise, or not.
func changed(was, is *event.Payload) []string {
	var names []string
	members := func(p *event.Payload) (all map[string]jsontext.Value) {
		_ = p.Decode(&all) // a payload is an object
		return all
	}
	before, after := members(was), members(is)
	for name, value := range after {
		if old, found := before[name]; !found || !equal(old, value) {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, found := after[name]; !found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// value returns what came of it as an example writes it: a verdict, or a payload.
func (r reply) value(p *event.Payload) ([]byte, error) {
	carried := p
	if r.payload != nil {
		carried = r.payload
	}
	if r.shape != event.Veto {
		return []byte(carried.Text()), nil
	}
	verdict := struct {
		Allow   bool           `json:"allow"`
		Reason  string         `json:"reason,omitzero"`
		Payload jsontext.Value `json:"payload,omitzero"`
	}{Allow: r.verdict.Allow, Reason: r.verdict.Reason}
	if r.payload != nil {
		verdict.Payload = jsontext.Value(r.payload.Text())
	}
	return json.Marshal(verdict)
}

// examples emits each payload among the examples on a bus that has the handlers
// of this plugin, and holds what comes of it against what is expected:
//
//	examples/EVENT.NAME.input.json    a payload
//	examples/EVENT.NAME.output.json   {allow, reason, payload} of a veto, the payload of a transform
func (h *handlers) examples(ctx context.Context) error {
	entries, err := entriesOf(h.dir, "examples")
	if err != nil {
		return err
	}
	bus := event.NewBus("check", event.Options{Log: slog.New(slog.DiscardHandler)})
	defer bus.Close()
	for _, s := range h.all {
		s.Mode = event.Fail // so that it is told here
		if _, err := bus.On(s); err != nil {
			return err
		}
	}
	run := 0
	for _, entry := range entries {
		e, stem := exampleOfEvent(entry.Name())
		if e == nil || run == maxExamples {
			continue
		}
		run++
		name := h.plugin + ": examples/" + entry.Name()
		if !bus.Heard(e.Name) {
			h.tell(name, hears, Warn, "the plugin does not hear "+e.Name)
			continue
		}
		input, err := read(h.dir, "examples/"+entry.Name())
		if err != nil {
			h.tell(name, hears, Fail, err.Error())
			continue
		}
		p, err := event.NewPayload(string(input))
		if err != nil {
			h.tell(name, hears, Fail, messageOf(err))
			continue
		}
		got, err := emit(ctx, bus, e, p)
		if err == nil {
			err = got.fits(ctx, e)
		}
		switch output, missing := read(h.dir, "examples/"+stem+".output.json"); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			h.tell(name, hears, Fail, story(h.dir, err))
		case missing != nil || e.Shape == event.Listener:
			h.tell(name, hears, Pass, got.says(p))
		default:
			is, err := got.value(p)
			if err != nil {
				return err
			}
			if !equal(is, output) {
				h.tell(name, expects, Fail, "what came of it is "+clip(is))
				continue
			}
			h.tell(name, expects, Pass, got.says(p))
		}
	}
	return nil
}

// exampleOfEvent returns the event that a file is a payload of, nil for any other.
func exampleOfEvent(file string) (e *event.Event, stem string) {
	stem, is := strings.CutSuffix(file, ".input.json")
	if !is {
		return nil, ""
	}
	base, version, _ := strings.Cut(stem, "@")
	number, _, _ := strings.Cut(version, ".")
	if e, found := event.Find(base + "@" + number); found {
		return e, stem
	}
	return nil, ""
}

// emit has all handlers of an event called.
func emit(ctx context.Context, bus *event.Bus, e *event.Event, p *event.Payload) (r reply, err error) {
	begin := time.Now()
	switch r.shape = e.Shape; r.shape {
	case event.Transform:
		if r.payload, err = bus.Transform(ctx, e.Name, p); r.payload == p {
			r.payload = nil
		}
	case event.Veto:
		r.verdict, err = bus.Veto(ctx, e.Name, p)
		r.payload = r.verdict.Payload
	default:
		err = bus.Emit(ctx, e.Name, p)
	}
	r.took = time.Since(begin)
	return r, err
}
