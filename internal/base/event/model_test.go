package event

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mortise-dev/mortise/plugin"
)

// A plain bus does what the contract says in the most obvious way: it keeps
// subscriptions in the order of registration and looks for the next to call.
type plain struct {
	all   []*plainHandler
	told  []string
	calls []string
}

type plainHandler struct {
	event, plugin string
	priority      int
	mode          Mode
	before, after []string
	does          string
}

// ordered returns the handlers of an event in the order of their calls, and false
// if there is none that all of them agree with.
func (p *plain) ordered(event string) ([]*plainHandler, bool) {
	var rest, done []*plainHandler
	for _, h := range p.all {
		if h.event == event {
			rest = append(rest, h)
		}
	}
	waits := func(h *plainHandler) bool {
		return slices.ContainsFunc(rest, func(other *plainHandler) bool {
			return other.priority < h.priority ||
				other.priority == h.priority && (slices.Contains(h.after, other.plugin) || slices.Contains(other.before, h.plugin))
		})
	}
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(h *plainHandler) bool { return !waits(h) })
		if i < 0 {
			return nil, false
		}
		done = append(done, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return done, true
}

// dispatch returns what comes of an event that carries text: who refused it, who
// failed and was skipped, and who ended it.
func (p *plain) dispatch(event, text string) (after, refused string, failed []string, ended string) {
	handlers, _ := p.ordered(event)
	for _, h := range handlers {
		p.calls = append(p.calls, h.plugin+" "+h.does+" "+text)
		switch h.does {
		case "fail", "panic":
			if h.mode == Fail {
				return text, "", failed, h.plugin
			}
			failed = append(failed, h.plugin)
			p.told = append(p.told, h.plugin+" "+event)
		case "refuse":
			return text, h.plugin, failed, ""
		case "rewrite":
			text += h.plugin
		}
	}
	return text, "", failed, ""
}

// TestTheBusIsThePlainBus lets both do the same things and compares all there is
// to see: who is called with what, what comes of it, and what is told.
func TestTheBusIsThePlainBus(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		model := &plain{}
		bus := NewBus("agent", Options{})
		defer bus.Close()
		var calls, told []string
		if _, err := bus.On(Subscription{Event: PluginError, Plugin: "watcher", Listen: func(_ context.Context, p *Payload) error {
			told = append(told, p.String("pluginId")+" "+p.String("event"))
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		plugins := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		events := rapid.SampledFrom([]string{ToolAfter, ChannelMessageIn, ToolBefore})
		does := map[string]*rapid.Generator[string]{
			ToolAfter:        rapid.SampledFrom([]string{"nothing", "fail", "panic"}),
			ChannelMessageIn: rapid.SampledFrom([]string{"nothing", "rewrite", "rewrite", "fail", "panic"}),
			ToolBefore:       rapid.SampledFrom([]string{"nothing", "rewrite", "rewrite", "fail", "panic", "refuse"}),
		}
		var offs []func()
		var offOf []*plainHandler

		add := func(t *rapid.T) {
			h := &plainHandler{event: events.Draw(t, "event"), plugin: plugins.Draw(t, "plugin"),
				priority: rapid.IntRange(99, 101).Draw(t, "priority"),
				mode:     rapid.SampledFrom([]Mode{Skip, Skip, Skip, Fail}).Draw(t, "mode"),
				before:   rapid.SliceOfN(plugins, 0, 1).Draw(t, "before"),
				after:    rapid.SliceOfN(plugins, 0, 1).Draw(t, "after")}
			h.does = does[h.event].Draw(t, "does")
			s := Subscription{Event: h.event, Plugin: h.plugin, Priority: new(float64(h.priority)), Mode: h.mode, Before: h.before, After: h.after}
			act := func(p *Payload) (*Payload, error) {
				calls = append(calls, h.plugin+" "+h.does+" "+p.String("text"))
				switch h.does {
				case "fail":
					return p.With("text", "0"), errBroken
				case "panic":
					panic("broken")
				case "rewrite":
					return p.With("text", `"`+p.String("text")+h.plugin+`"`), nil
				}
				return nil, nil
			}
			switch h.event {
			case ToolAfter:
				s.Listen = func(_ context.Context, p *Payload) error { _, err := act(p); return err }
			case ChannelMessageIn:
				s.Transform = func(_ context.Context, p *Payload) (*Payload, error) { return act(p) }
			default:
				s.Veto = func(_ context.Context, p *Payload) (Verdict, error) {
					p, err := act(p)
					return Verdict{Allow: h.does != "refuse", Payload: p}, err
				}
			}
			off, err := bus.On(s)
			model.all = append(model.all, h)
			if _, possible := model.ordered(h.event); !possible {
				model.all = model.all[:len(model.all)-1]
				if plugin.CodeOf(err) != plugin.CodeInvalidInput {
					t.Fatalf("a circle: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			offs, offOf = append(offs, off), append(offOf, h)
		}

		t.Repeat(map[string]func(*rapid.T){
			"on":       add,
			"on again": add,
			"off": func(t *rapid.T) {
				if len(offs) == 0 {
					t.Skip("there is no handler")
				}
				i := rapid.IntRange(0, len(offs)-1).Draw(t, "which") // may be off already
				offs[i]()
				model.all = slices.DeleteFunc(model.all, func(h *plainHandler) bool { return h == offOf[i] })
			},
			"remove": func(t *rapid.T) {
				name := plugins.Draw(t, "plugin")
				bus.Remove(name)
				model.all = slices.DeleteFunc(model.all, func(h *plainHandler) bool { return h.plugin == name })
			},
			"dispatch": func(t *rapid.T) {
				event := events.Draw(t, "event")
				calls, model.calls = nil, nil
				text, refused, skipped, ended := model.dispatch(event, "-")
				was, err := NewPayload(`{"text":"-"}`)
				if err != nil {
					t.Fatal(err)
				}
				var got *Payload
				var v Verdict
				switch event {
				case ToolAfter:
					err = bus.Emit(t.Context(), event, was)
				case ChannelMessageIn:
					got, err = bus.Transform(t.Context(), event, was)
				default:
					v, err = bus.Veto(t.Context(), event, was)
					got = v.Payload
					if v.By != refused || v.Allow != (refused == "" && ended == "") {
						t.Fatalf("got %+v, want a refusal by %q", v, refused)
					}
					failed := skipped
					if ended != "" {
						failed = append(slices.Clone(failed), ended)
					}
					if names := whose(v.Failed); !slices.Equal(names, failed) {
						t.Fatalf("failed: got %q, want %q", names, failed)
					}
				}
				if !slices.Equal(calls, model.calls) {
					t.Fatalf("calls: got %q, want %q", calls, model.calls)
				}
				if (err != nil) != (ended != "") || err != nil && !strings.HasPrefix(err.Error(), "hook_failed: plugin "+ended+" failed on "+event) {
					t.Fatalf("got %v, want one of %q", err, ended)
				}
				if event != ToolAfter && err == nil && refused == "" {
					if got == nil {
						got = was
					}
					if got.String("text") != text {
						t.Fatalf("got %s, want %s", got.String("text"), text)
					}
				}
			},
			"": func(t *rapid.T) {
				for _, event := range []string{ToolAfter, ChannelMessageIn, ToolBefore} {
					heard := slices.ContainsFunc(model.all, func(h *plainHandler) bool { return h.event == event })
					if bus.Heard(event) != heard {
						t.Fatalf("%s is heard: %v", event, !heard)
					}
				}
			},
		})
		bus.Close()
		// More than the queue holds may be dropped, never changed or put in another order.
		if len(told) < len(model.told) && len(told) >= maxQueue {
			model.told = model.told[:len(told)]
		}
		if !slices.Equal(told, model.told) {
			t.Fatalf("told %q, want %q", told, model.told)
		}
	})
}

func whose(failures []Failure) (names []string) {
	for _, f := range failures {
		names = append(names, f.Plugin)
	}
	return names
}
