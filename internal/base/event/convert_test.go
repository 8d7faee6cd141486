package event

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// versions is a catalogue with three versions of each shape. The first has text,
// the second calls it body and adds a language, the third wraps both in message.
func versions() []Event {
	rename := func(from, to string) func(p, was *Payload) (*Payload, error) {
		return func(p, was *Payload) (*Payload, error) {
			raw, found := p.Field(from)
			if !found {
				return nil, fmt.Errorf("it has no %s", from)
			}
			p = p.Without(from).With(to, raw)
			if was != nil { // what the other version cannot say
				if language, found := was.Field("language"); found && to == "body" {
					p = p.With("language", language)
				}
			}
			return p, nil
		}
	}
	up2, down1 := rename("text", "body"), rename("body", "text")
	up3 := func(p, _ *Payload) (*Payload, error) {
		return NewPayload(`{"message":` + p.Text() + `}`)
	}
	down2 := func(p, _ *Payload) (*Payload, error) {
		raw, _ := p.Field("message")
		return NewPayload(raw)
	}
	var all []Event
	for _, shape := range []Shape{Listener, Transform, Veto} {
		name := "test." + string(shape)
		all = append(all,
			Event{Name: name + "@v1", Shape: shape},
			Event{Name: name + "@v2", Shape: shape, Up: up2, Down: func(p, was *Payload) (*Payload, error) {
				p, err := down1(p, was)
				if err != nil {
					return nil, err
				}
				return p.Without("language"), nil
			}},
			Event{Name: name + "@v3", Shape: shape, Up: up3, Down: down2})
	}
	plain, _ := Find(PluginError)
	return append(all, *plain)
}

func versionBus(t *testing.T) *Bus {
	bus := newBus("agent", Options{}, versions())
	t.Cleanup(bus.Close)
	return bus
}

func TestTwoVersionsInOneDispatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		emitted, payload string
		want             []string
	}{
		{"@v1", `{"text":"hi"}`, []string{`1 {"text":"hi"}`, `2 {"body":"hi"}`, `1 {"text":"hi"}`, `3 {"message":{"body":"hi"}}`}},
		{"@v2", `{"body":"hi","language":"en"}`, []string{`1 {"text":"hi"}`, `2 {"body":"hi","language":"en"}`, `1 {"text":"hi"}`, `3 {"message":{"body":"hi","language":"en"}}`}},
		{"@v3", `{"message":{"body":"hi"}}`, []string{`1 {"text":"hi"}`, `2 {"body":"hi"}`, `1 {"text":"hi"}`, `3 {"message":{"body":"hi"}}`}},
	} {
		bus := versionBus(t)
		var heard []string
		for i, version := range []string{"3", "1", "2", "1"} {
			on(t, bus, Subscription{Event: "test.listener@v" + version, Priority: new(float64([]int{9, 1, 2, 3}[i])), Listen: func(_ context.Context, p *Payload) error {
				heard = append(heard, version+" "+p.Text())
				return nil
			}})
		}
		if !bus.Heard("test.listener" + c.emitted) {
			t.Error("not heard in another version")
		}
		if err := bus.Emit(t.Context(), "test.listener"+c.emitted, payload(t, c.payload)); err != nil || !slices.Equal(heard, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.emitted, heard, err, c.want)
		}
	}
}

// rewrites is a transform in the words of a version.
func rewrites(version int, letter string) func(context.Context, *Payload) (*Payload, error) {
	return func(_ context.Context, p *Payload) (*Payload, error) {
		switch version {
		case 1:
			return p.With("text", `"`+p.String("text")+letter+`"`), nil
		case 2:
			return p.With("body", `"`+p.String("body")+letter+`"`), nil
		default:
			raw, _ := p.Field("message")
			inner, err := NewPayload(raw)
			if err != nil {
				return nil, err
			}
			return p.With("message", inner.With("body", `"`+inner.String("body")+letter+`"`).Text()), nil
		}
	}
}

func TestAnswersOfOtherVersionsAreConvertedBackAndThreaded(t *testing.T) {
	t.Parallel()
	for emitted, c := range map[string]struct{ payload, want string }{
		"@v1": {`{"at":1,"text":"-"}`, `{"at":1,"text":"-abcd"}`},
		"@v2": {`{"body":"-","language":"en"}`, `{"body":"-abcd","language":"en"}`}, // which version 1 has no word for
		"@v3": {`{"message":{"body":"-","language":"en"}}`, `{"message":{"body":"-abcd","language":"en"}}`},
	} {
		bus := versionBus(t)
		for i, version := range []int{1, 3, 2, 1} {
			letter := string(rune('a' + i))
			on(t, bus, Subscription{Event: fmt.Sprintf("test.transform@v%d", version), Transform: rewrites(version, letter)})
			on(t, bus, Subscription{Event: fmt.Sprintf("test.transform@v%d", version), Transform: func(_ context.Context, p *Payload) (*Payload, error) {
				return []*Payload{nil, p}[i%2], nil // as it was
			}})
			on(t, bus, Subscription{Event: fmt.Sprintf("test.veto@v%d", version), Veto: func(ctx context.Context, p *Payload) (Verdict, error) {
				p, err := rewrites(version, letter)(ctx, p)
				return Verdict{Allow: true, Payload: p}, err
			}})
			on(t, bus, Subscription{Event: fmt.Sprintf("test.veto@v%d", version), Veto: func(_ context.Context, p *Payload) (Verdict, error) {
				return Verdict{Allow: true, Payload: p}, nil
			}})
		}
		was := payload(t, c.payload)
		p, err := bus.Transform(t.Context(), "test.transform"+emitted, was)
		same(t, p, err, c.want)
		v, err := bus.Veto(t.Context(), "test.veto"+emitted, was)
		same(t, v.Payload, err, c.want)
	}
}

// same compares payloads as values.
func same(t *testing.T, p *Payload, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var a, b map[string]any
	if err := errors.Join(p.Decode(&a), payload(t, want).Decode(&b)); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("got %s, want %s", p.Text(), want)
	}
}

func TestUnchangedStaysTheVeryPayload(t *testing.T) {
	t.Parallel()
	bus := versionBus(t)
	on(t, bus, Subscription{Event: "test.transform@v1", Transform: func(_ context.Context, p *Payload) (*Payload, error) { return p, nil }})
	on(t, bus, Subscription{Event: "test.veto@v1", Veto: func(_ context.Context, p *Payload) (Verdict, error) { return Verdict{Allow: true, Payload: p}, nil }})
	was := payload(t, `{"body":"-","language":"en"}`)
	if p, err := bus.Transform(t.Context(), "test.transform@v2", was); err != nil || p != was {
		t.Errorf("%v, %v", p, err)
	}
	if v, err := bus.Veto(t.Context(), "test.veto@v2", was); err != nil || v.Payload != nil {
		t.Errorf("%v, %v", v, err)
	}
}

func TestWhatCannotBeConvertedIsAFailureOfTheHandler(t *testing.T) {
	t.Parallel()
	bus := versionBus(t)
	var told []string
	on(t, bus, Subscription{Event: PluginError, Listen: func(_ context.Context, p *Payload) error {
		told = append(told, p.String("pluginId")+" "+p.String("event")+" "+p.String("message"))
		return nil
	}})
	on(t, bus, Subscription{Event: "test.veto@v1", Plugin: "drops it", Veto: func(_ context.Context, p *Payload) (Verdict, error) {
		return Verdict{Allow: true, Payload: p.Without("text")}, nil
	}})
	v, err := bus.Veto(t.Context(), "test.veto@v2", payload(t, `{"body":"-"}`))
	if err != nil || !v.Allow || len(v.Failed) != 1 || !v.Failed[0].Guards || v.Failed[0].Event != "test.veto@v1" {
		t.Errorf("%+v, %v", v, err)
	}
	v, err = bus.Veto(t.Context(), "test.veto@v2", payload(t, `{}`)) // and cannot be asked
	if err != nil || len(v.Failed) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	bus.Close()
	if want := []string{
		"drops it test.veto@v1 making a payload of test.veto@v2 from one of test.veto@v1: it has no text",
		"drops it test.veto@v1 making a payload of test.veto@v1 from one of test.veto@v2: it has no body",
	}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}

func TestPairingsAreCheckedInAllVersions(t *testing.T) {
	t.Parallel()
	bus := versionBus(t)
	err := bus.Emit(t.Context(), "test.veto@v2", payload(t, `{}`))
	wantCode(t, err, plugin.CodeInvalidInput)
	_, err = bus.On(Subscription{Event: "test.veto@v4", Veto: allows})
	if err == nil || !strings.Contains(err.Error(), "the newest version is test.veto@v3") {
		t.Error(err)
	}
}

func TestCatalogueWithGapsIsRefused(t *testing.T) {
	t.Parallel()
	convert := func(p, _ *Payload) (*Payload, error) { return p, nil }
	for name, catalogue := range map[string][]Event{
		"no version":      {{Name: "a"}},
		"version 2 alone": {{Name: "a@v2"}},
		"no conversion":   {{Name: "a@v1"}, {Name: "a@v2", Up: convert}},
		"another shape":   {{Name: "a@v1", Shape: Veto}, {Name: "a@v2", Shape: Listener, Up: convert, Down: convert}},
		"twice":           {{Name: "a@v1"}, {Name: "a@v1"}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			newBus("agent", Options{}, catalogue)
		}()
	}
}
