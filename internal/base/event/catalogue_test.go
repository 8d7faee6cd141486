package event

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/schema"
)

// TestFifteenEventsWithTheirShapes has the contract's own list.
func TestFifteenEventsWithTheirShapes(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`
		agent.started@v1 listener
		agent.stopped@v1 listener
		session.opened@v1 listener
		session.closed@v1 listener
		session.message.received@v1 transform
		prompt.assemble@v1 transform
		model.before@v1 transform
		model.after@v1 listener
		tool.before@v1 veto
		tool.after@v1 listener
		channel.message.in@v1 transform
		channel.message.out@v1 transform
		schedule.fired@v1 transform
		memory.upsert@v1 listener
		plugin.error@v1 listener`)
	var got []string
	for _, e := range Catalogue {
		got = append(got, e.Name, string(e.Shape))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWebhooksGetFourEvents(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range Catalogue {
		if e.Webhook {
			got = append(got, e.Name)
			if e.HotPath {
				t.Errorf("%s is on the hot path", e.Name)
			}
		}
	}
	slices.Sort(got)
	if want := []string{MemoryUpsert, ScheduleFired, SessionClosed, ToolAfter}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFieldsAreSpelledAsInTheContract(t *testing.T) {
	t.Parallel()
	known := strings.Fields(`agentId sessionId at sections key content toolName toolCallId args result durationMs ok error
		channel direction text metadata scheduleId type prompt reason senderUserId senderRole senderChannel turnIndex
		messages sessionType sourceKind sourcePlatform participants pluginId event message stack`)
	used := map[string]bool{}
	for _, e := range Catalogue {
		for _, f := range e.Fields {
			used[f.Name] = true
			if f.Name != "messages" { // what a model is sent is spelled as models have it
				for _, inner := range f.Members {
					used[inner.Name] = true
				}
			}
			if f.Doc == "" || !slices.Contains([]string{"string", "time", "integer", "boolean", "object", "array", "any"}, f.Type) {
				t.Errorf("%s of %s: %+v", f.Name, e.Name, f)
			}
		}
	}
	for _, name := range known {
		if !used[name] {
			t.Errorf("no event has %s", name)
		}
		delete(used, name)
	}
	if len(used) > 0 {
		t.Errorf("the contract does not have %v", used)
	}
}

// TestEachEventHasTheMembersThatTheContractNamesForIt is the contract's list of
// members, event by event. A member that is gone breaks plugins that were written
// for the event, whatever else the catalogue says of itself.
func TestEachEventHasTheMembersThatTheContractNamesForIt(t *testing.T) {
	t.Parallel()
	contract := map[string]string{
		AgentStarted:           "agentId at",
		AgentStopped:           "agentId at reason",
		SessionOpened:          "agentId sessionId at sessionType sourceKind sourcePlatform participants",
		SessionClosed:          "agentId sessionId at reason",
		SessionMessageReceived: "agentId sessionId at text channel senderUserId senderRole senderChannel metadata",
		PromptAssemble:         "agentId sessionId at sections",
		ModelBefore:            "agentId sessionId at turnIndex messages",
		ModelAfter:             "agentId sessionId at turnIndex messages durationMs ok text error",
		ToolBefore:             "agentId sessionId at toolName toolCallId args",
		ToolAfter:              "agentId sessionId at toolName toolCallId args result durationMs ok error",
		ChannelMessageIn:       "agentId sessionId at channel direction text metadata",
		ChannelMessageOut:      "agentId sessionId at channel direction text metadata",
		ScheduleFired:          "agentId sessionId at scheduleId type prompt",
		MemoryUpsert:           "agentId sessionId at key content metadata",
		PluginError:            "pluginId event message stack",
	}
	for _, e := range Catalogue {
		for _, name := range strings.Fields(contract[e.Name]) {
			if !slices.ContainsFunc(e.Fields, func(f Field) bool { return f.Name == name }) {
				t.Errorf("%s has no %s", e.Name, name)
			}
		}
		if len(strings.Fields(contract[e.Name])) != len(e.Fields) {
			t.Errorf("%s has %d members; the contract has %s", e.Name, len(e.Fields), contract[e.Name])
		}
	}
}

// TestExamplesFitTheirSchemas also takes each member away in turn: a schema that
// lets anything through would not notice.
func TestExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	for _, e := range Catalogue {
		if found, ok := Find(e.Name); !ok || found.Name != e.Name {
			t.Errorf("%s is not found", e.Name)
		}
		compiled, err := schema.Compile(e.Schema())
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		example := payload(t, e.Example)
		if err := compiled.Check(t.Context(), json.RawMessage(example.Text())); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		for name := range example.Members() {
			i := slices.IndexFunc(e.Fields, func(f Field) bool { return f.Name == name })
			if i < 0 {
				t.Errorf("the example of %s has %s, which is no field", e.Name, name)
				continue
			}
			err := compiled.Check(t.Context(), json.RawMessage(example.Without(name).Text()))
			if (err == nil) != e.Fields[i].Optional {
				t.Errorf("%s without %s: %v", e.Name, name, err)
			}
			if kind := e.Fields[i].Type; kind != "any" && compiled.Check(t.Context(), json.RawMessage(example.With(name, "null").Text())) == nil {
				t.Errorf("%s: %s is a %s and may be null", e.Name, name, kind)
			}
		}
		if e.Fires == "" || !strings.HasSuffix(e.Fires, ".") {
			t.Errorf("%s: when does it fire? %q", e.Name, e.Fires)
		}
	}
	if _, ok := Find("tool.before"); ok {
		t.Error("a name without its version was found")
	}
}
