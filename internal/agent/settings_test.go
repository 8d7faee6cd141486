package agent_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/plugin"
)

func TestCheckID(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"a": true, "support-2_x": true, "0": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "*": false, "-a": false, "A": false, "a/b": false, "a\n": false, "é": false,
	} {
		if err := agent.CheckID(id); (err == nil) != ok || !ok && plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// Settings come back as they were kept, and what cannot be kept is refused with
// the name of what is wrong.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := agent.Settings{MaxSteps: 4, History: 500, Channels: map[string]agent.Channel{"desk": {Scheme: "slack", Secret: "s", Reply: "p/o", Labels: []string{"private"}}}}
	if got, err := agent.ParseSettings([]byte(s.Encode())); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := agent.ParseSettings(nil); err != nil || !reflect.DeepEqual(got, agent.Settings{}) {
		t.Errorf("nothing: %+v, %v", got, err)
	}
	channel := func(name, body string) string { return fmt.Sprintf(`{"channels":{%q:%s}}`, name, body) }
	for text, want := range map[string]string{
		`{"max_steps":33}`:  "max_steps is 33",
		`{"max_tools":6}`:   "max_tools is 6",
		`{"max_tokens":-1}`: "max_tokens is -1",
		`{"history":501}`:   "history is 501",
		`{"steps":1}`:       "steps",
		`{"history":1}{}`:   "settings",
		`[]`:                "settings",
		channel("Desk", `{"scheme":"slack","secret":"s"}`):          "namespace",
		channel(agent.Terminal, `{"scheme":"slack","secret":"s"}`):  "the host's own",
		channel(agent.Called, `{"scheme":"slack","secret":"s"}`):    "the host's own",
		channel(agent.Scheduled, `{"scheme":"slack","secret":"s"}`): "the host's own",
		channel("desk", `{"scheme":"smoke","secret":"s"}`):          "no scheme",
		channel("desk", `{"scheme":"slack"}`):                       "secret",
		`{"channels":{` + strings.Repeat(" ", 70<<10) + `}}`:        "bytes",
	} {
		if _, err := agent.ParseSettings([]byte(text)); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}
