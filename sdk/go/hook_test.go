package mortise

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func TestAPayloadIsChangedInOneMemberAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		payload, name string
		value         any
		want          string
	}{
		{`{"a":1,"text":"x","n":9007199254740993}`, "text", "y", `{"a":1,"text":"y","n":9007199254740993}`},
		{`{ "a" : [ 1 ] }`, "text", "y", `{"a":[ 1 ],"text":"y"}`},
		{`{}`, "a\"b", map[string]int{"c": 1}, `{"a\"b":{"c":1}}`},
		{`{"a\u0062":1,"c":2}`, "ab", nil, `{"ab":null,"c":2}`},
	} {
		got, err := Payload(c.payload).With(c.name, c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.payload, got, err, c.want)
		}
	}
	if _, err := (Payload(`{}`)).With("f", func() {}); err == nil {
		t.Error("a function became a value")
	}
}

func TestAHookThatCannotBeRightShowsAtStart(t *testing.T) {
	t.Parallel()
	listen := func(*Call, Payload) error { return nil }
	veto := func(*Call, Payload) (Verdict, error) { return Verdict{}, nil }
	for want, wrong := range map[string]func(p *Plugin){
		`say tool.before@v1`:       func(p *Plugin) { Veto(p, "tool.before", veto) },
		`no event "tool.befor`:     func(p *Plugin) { Veto(p, "tool.befor@v1", veto) },
		`tool.before@v1 is a veto`: func(p *Plugin) { Listen(p, "tool.before@v1", listen) },
		`two hooks`: func(p *Plugin) {
			Listen(p, "tool.after@v1", listen)
			Listen(p, "tool.after@v1", listen)
		},
		`skip or fail`: func(p *Plugin) { Listen(p, "tool.after@v1", listen, FailureMode("ignore")) },
		`0 ms`:         func(p *Plugin) { Listen(p, "tool.after@v1", listen, Deadline(time.Microsecond)) },
		`3600000 ms`:   func(p *Plugin) { Listen(p, "tool.after@v1", listen, Deadline(time.Hour)) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, want) {
					t.Errorf("it said %q, want %q", said, want)
				}
			}()
			wrong(New("a", "1.0.0"))
		}()
	}
}

// What a hook answers that no host could read is its failure, and no bad frame.
func TestAHookThatAnswersNonsenseFails(t *testing.T) {
	t.Parallel()
	answers := map[string]string{`1`: "no JSON object", `{"a":`: "not JSON", `{"a":1,"a":2}`: "not JSON", "{\"a\":\"\xff\"}": "not JSON"}
	p := New("a", "1.0.0")
	Veto(p, "tool.before@v1", func(*Call, Payload) (Verdict, error) { panic("at the disco") })
	for answer, want := range answers {
		h := &hook{describedHook{Event: "channel.message.in@v1"}, func(*Call, Payload) (hookAnswer, error) {
			return hookAnswer{Payload: jsontext.Value(answer)}, nil
		}}
		if _, err := h.answer(&Call{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	j := job{method: "hook", call: &Call{Operation: "tool.before@v1"}, hook: p.hooks["tool.before@v1"], input: jsontext.Value(`{}`)}
	if _, _, err := j.answer(); err == nil || !strings.Contains(err.Error(), "disco") {
		t.Errorf("a panic: %v", err)
	}
	raw, err := json.Marshal(hookAnswer{})
	if err != nil || string(raw) != `{}` {
		t.Errorf("nothing is %s, %v", raw, err)
	}
}
