package event

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

func TestPayloadsAreStrict(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "null", "[]", `"text"`, "{", `{"a":}`, `{"a":1,}`, `{"a":1}{}`, `{"a":1} x`, `{a:1}`, `{"a":01}`, `{"a":NaN}`,
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":2}}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, "{\"a\":\"\n\"}", "\ufeff{}",
	} {
		if _, err := NewPayload(text); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := NewPayload(`{"a":"` + strings.Repeat("x", MaxPayload) + `"}`)
	wantCode(t, err, plugin.CodeInputTooLarge)
	if p := payload(t, " \n{ } \t"); p.Text() != "{ }" {
		t.Errorf("%q", p.Text())
	}
}

func TestFieldsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	p := payload(t, ` { "a" : 1.50 , "b":"x\u0041\n\"\\" ,"\u0063" :[ {"a":2}, "]" ],"d":{"a":"}"},"e":true,"":null,"f":"\\"} `)
	for name, want := range map[string]string{
		"a": "1.50", "b": `"x\u0041\n\"\\"`, "c": `[ {"a":2}, "]" ]`, "d": `{"a":"}"}`, "e": "true", "": "null", "f": `"\\"`,
	} {
		if raw, ok := p.Field(name); !ok || raw != want {
			t.Errorf("%s: got %s, want %s", name, raw, want)
		}
	}
	if _, ok := p.Field("none"); ok {
		t.Error("there is no such field")
	}
	if p.String("b") != "xA\n\"\\" || p.String("f") != `\` || p.String("a") != "" || p.String("none") != "" {
		t.Errorf("%q, %q", p.String("b"), p.String("f"))
	}
	var into struct {
		A float64 `json:"a"`
	}
	if err := p.Decode(&into); err != nil || into.A != 1.5 {
		t.Errorf("%v, %v", into, err)
	}
	wantCode(t, p.Decode(&[]int{}), plugin.CodeInvalidInput)
}

func TestWithChangesOneMemberAndNothingElse(t *testing.T) {
	t.Parallel()
	p := payload(t, `{ "a" : 1, "b":"two" , "c":[3] }`)
	for want, got := range map[string]*Payload{
		`{ "a" : 10, "b":"two" , "c":[3] }`:            p.With("a", "10"),
		`{ "a" : 1, "b":null , "c":[3] }`:              p.With("b", " null\n"),
		`{ "a" : 1, "b":"two" , "c":{"x":1} }`:         p.With("c", `{"x":1}`),
		`{ "a" : 1, "b":"two" , "c":[3],"d\"":4 }`:     p.With(`d"`, "4"),
		`{ "a" : -1000, "b":2 , "c":[],"d":4,"e":"" }`: p.With("a", "-1000").With("d", "0").With("c", "[]").With("e", `""`).With("b", "2").With("d", "4"),
		`{ "b":"two" , "c":[3] }`:                      p.Without("a"),
		`{ "a" : 1, "c":[3] }`:                         p.Without("b"),
		`{ "a" : 1, "b":"two" }`:                       p.Without("c"),
		`{  }`:                                         p.Without("c").Without("a").Without("b"),
		`{"x":1}`:                                      payload(t, `{}`).With("x", "1"),
		`{ "x":1}`:                                     payload(t, `{ }`).With("x", "1"),
	} {
		if got.Text() != want {
			t.Errorf("got %s, want %s", got.Text(), want)
		}
	}
	if p.Without("none") != p || p.Text() != `{ "a" : 1, "b":"two" , "c":[3] }` {
		t.Error("the payload itself changed")
	}
}

func TestSetRefusesWhatIsNoValue(t *testing.T) {
	t.Parallel()
	p := payload(t, `{"a":1}`)
	for _, raw := range []string{"", "x", "1,", `1,"b":2`, "1}", `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\""} {
		_, err := p.Set("a", raw)
		wantCode(t, err, plugin.CodeInvalidInput)
	}
	_, err := p.Set("\xff", "1")
	wantCode(t, err, plugin.CodeInvalidInput)
	_, err = p.Set("a", `"`+strings.Repeat("x", MaxPayload-5)+`"`)
	wantCode(t, err, plugin.CodeInputTooLarge)
	_, err = p.Set("a", `"`+strings.Repeat("x", MaxPayload)+`"`)
	wantCode(t, err, plugin.CodeInputTooLarge)
	defer func() {
		if err, ok := recover().(error); !ok || plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("With panicked with %v", err)
		}
	}()
	p.With("a", "x")
}

func TestEncode(t *testing.T) {
	t.Parallel()
	p, err := Encode(struct {
		A string   `json:"a"`
		B []string `json:"b"`
	}{"<\xff>", nil})
	if err != nil || p.Text() != "{\"a\":\"<\ufffd>\",\"b\":[]}" {
		t.Errorf("%v, %v", p, err)
	}
	_, err = Encode([]int{1})
	wantCode(t, err, plugin.CodeInvalidInput)
	_, err = Encode(func() {})
	wantCode(t, err, plugin.CodeInternal)
}

// TestPayloadsAreFrozen lets handlers do to a payload what they can, all at once.
func TestPayloadsAreFrozen(t *testing.T) {
	t.Parallel()
	p := payload(t, `{"text":"-","sections":[1]}`)
	was := strings.Clone(p.Text())
	bus := newTestBus(t)
	for range 4 {
		on(t, bus, Subscription{Event: ChannelMessageIn, Transform: func(ctx context.Context, p *Payload) (*Payload, error) {
			var all map[string]any
			if err := p.Decode(&all); err != nil {
				return nil, err
			}
			all["text"] = "changed"
			clear(all["sections"].([]any))
			return appends("a")(ctx, p)
		}})
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if changed, err := bus.Transform(t.Context(), ChannelMessageIn, p); err != nil || changed.Text() != `{"text":"-aaaa","sections":[1]}` {
				t.Errorf("%v, %v", changed, err)
			}
		})
	}
	wg.Wait()
	if p.Text() != was || p.String("text") != "-" {
		t.Errorf("it became %s", p.Text())
	}
}

// FuzzPayload holds Field, With and Without against encoding/json.
func FuzzPayload(f *testing.F) {
	for _, text := range []string{`{}`, `{ "a" : 1 , "b":[{"c":"]"}],"\u0063":"\\\""}`, `{"":{},"x":-1e9 }`, kilobyte().text} {
		f.Add(text, "a", `[1,"two",{}]`)
		f.Add(text, "new\"", `null`)
	}
	f.Fuzz(func(t *testing.T, text, name, raw string) {
		p, err := NewPayload(text)
		if err != nil {
			return
		}
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			t.Fatalf("encoding/json refuses %q: %v", text, err)
		}
		compare := func(p *Payload) {
			t.Helper()
			if _, err := NewPayload(p.text); err != nil {
				t.Fatalf("%q: %v", p.text, err)
			}
			again := map[string]json.RawMessage{}
			if err := json.Unmarshal([]byte(p.text), &again); err != nil || !maps.EqualFunc(again, members, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Fatalf("%q is not %v: %v", p.text, members, err)
			}
			for name, want := range members {
				if got, ok := p.Field(name); !ok || got != string(want) {
					t.Fatalf("%q of %q: got %s, want %s", name, p.text, got, want)
				}
				var text string
				if err := json.Unmarshal(want, &text); err != nil {
					text = "" // no string
				}
				if p.String(name) != text {
					t.Fatalf("%q of %q: got %q, want %q", name, p.text, p.String(name), text)
				}
			}
			n := 0
			for name, raw := range p.Members() {
				if n++; string(members[name]) != raw {
					t.Fatalf("%q of %q: got %s, want %s", name, p.text, raw, members[name])
				}
			}
			if n != len(members) {
				t.Fatalf("%q has %d members, not %d", p.text, n, len(members))
			}
			if fresh := scan(p.text); !slices.Equal(fresh, p.index()) {
				t.Fatalf("%q: the index is %v, should be %v", p.text, p.index(), fresh)
			}
		}
		compare(p)
		changed, err := p.Set(name, raw)
		if err != nil {
			return
		}
		members[name] = json.RawMessage(strings.Trim(raw, " \t\r\n"))
		compare(changed)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			changed = changed.Without(name)
			delete(members, name)
			compare(changed)
		}
	})
}
