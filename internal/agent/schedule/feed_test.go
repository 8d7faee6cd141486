package schedule_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/plugin"
)

// What may run unattended (SH-26, T45).
func TestOperationsThatMayBeScheduled(t *testing.T) {
	t.Parallel()
	op := func(name string, kind plugin.Kind, effects ...string) *plugin.Operation {
		return &plugin.Operation{Name: name, Kind: kind, Effects: effects, Brokered: true}
	}
	ingest, send, list := op("ingest", plugin.Operator, "kb_write", "cursor_write"), op("send", plugin.Operator, "kb_write", "http_write"), op("list", plugin.Tool)
	alone := &plugin.Operation{Name: "alone", Kind: plugin.Operator, Effects: []string{"kb_write"}}
	action := op("mark", plugin.Operator, "kb_write")
	action.PolicyTags = []string{"action"}
	decide, hear := op("decide", plugin.Agent), op("hear", plugin.Adapter)
	all := []*plugin.Operation{alone, decide, hear, ingest, list, action, send}
	for _, test := range []struct {
		name       string
		feed       plugin.Feed
		operations []*plugin.Operation
		op, want   string // want begins with ! for a refusal that says so
	}{
		{"the default is injected", plugin.Feed{Default: "ingest", Allowed: []string{"ingest", "list"}}, all, "", "ingest"},
		{"one of the list", plugin.Feed{Default: "ingest", Allowed: []string{"ingest", "list"}}, all, "list", "list"},
		{"an effect outside, on the list", plugin.Feed{Allowed: []string{"send"}}, all, "send", "send"},
		{"not on the list", plugin.Feed{Default: "ingest", Allowed: []string{"ingest"}}, all, "list", "!allowed are ingest"},
		{"no default", plugin.Feed{Allowed: []string{"ingest", "list"}}, all, "", "!name one: ingest, list"},
		{"no default, one allowed", plugin.Feed{Allowed: []string{"ingest"}}, all, "", "!name one: ingest"},
		{"a default that is not on the list", plugin.Feed{Default: "send", Allowed: []string{"ingest"}}, all, "", "!allowed are ingest"},
		{"on the list, and no operation", plugin.Feed{Allowed: []string{"fetch"}}, all, "fetch", "!no operation fetch"},
		{"no list, no effects", plugin.Feed{}, all, "list", "list"},
		{"no list, effects inside", plugin.Feed{}, all, "ingest", "ingest"},
		{"no list, an effect outside", plugin.Feed{}, all, "send", "!the effect http_write"},
		{"no list, an effect outside by default", plugin.Feed{Default: "send"}, all, "", "!the effect http_write"},
		{"no list, effects past the host", plugin.Feed{}, all, "alone", "!do not go through the host"},
		{"no list, an action", plugin.Feed{}, all, "mark", "!it is an action"},
		{"no list, nothing asked for", plugin.Feed{}, all, "", "!name one: ingest, list"},
		{"no list, one operation", plugin.Feed{}, all[4:5], "", "list"},
		{"no list, one with an effect outside", plugin.Feed{}, []*plugin.Operation{send}, "", "!allowed are none"},
		{"an agent", plugin.Feed{}, all, "decide", "!of kind agent"},
		{"an adapter on the list", plugin.Feed{Allowed: []string{"hear"}}, all, "hear", "!of kind adapter"},
		{"no such operation", plugin.Feed{}, all, "nothing", "!no operation nothing"},
	} {
		m := &plugin.Manifest{Name: "mail", Feed: test.feed, Operations: test.operations}
		got, err := schedule.Choose(m, test.op)
		refusal, refused := strings.CutPrefix(test.want, "!")
		switch {
		case refused:
			e := plugin.AsError(err)
			if err == nil || e.Code != plugin.CodeInvalidInput || !strings.HasPrefix(e.Message, "invalid_feed_op: ") || !strings.Contains(e.Message, refusal) ||
				!strings.Contains(string(e.Details), `"error":"invalid_feed_op"`) {
				t.Errorf("%s: %v, want a refusal that says %q", test.name, err, refusal)
			}
		case err != nil || got.Name != test.want:
			t.Errorf("%s: %+v, %v, want %s", test.name, got, err, test.want)
		}
	}

	m := &plugin.Manifest{Name: "mail", Requires: plugin.Requires{Tools: []string{"send"}}, Operations: all}
	if _, err := schedule.Choose(m, "ingest"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("no list, and it calls others: %v", err)
	}
	if _, err := schedule.Choose(m, "list"); err != nil {
		t.Errorf("no list, and a tool that calls others, which have no effects then: %v", err)
	}
	m.Operations = append(m.Operations, op("later", plugin.Operator, "schedule_write"))
	if _, err := schedule.Choose(m, "later"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("no list, and it has others run later: %v", err)
	}
}
