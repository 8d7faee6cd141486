package toolset

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/plugin"
)

// memoryManifest is the plugin that every agent has: what it remembers, as tools
// of its own. The host carries these out itself.
var memoryManifest = &plugin.Manifest{
	Name: agent.Builtin, Version: version.Host, Owner: "mortise", Description: "What an agent remembers from one conversation to the next.",
	Dialect: "native", Isolation: plugin.IsolationAgent, Runner: plugin.Runner{Kind: "host", Protocol: "2"},
	Operations: []*plugin.Operation{
		{
			Name: "search", Kind: plugin.Tool, Timeout: 10 * time.Second, NoCache: true, AutoInvoke: true,
			Description: "Find what you remember: the entries that fit the words best.",
			Input:       json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","maxLength":1000},"limit":{"type":"integer","minimum":1,"maximum":50}},"required":["query"],"additionalProperties":false}`),
			Output:      json.RawMessage(`{"type":"object","properties":{"memories":{"type":"array"}},"required":["memories"]}`),
		},
		{
			Name: "upsert", Kind: plugin.Operator, Timeout: 10 * time.Second, Effects: []string{"memory_write"}, Brokered: true,
			Description: "Remember something under a key, in place of what was there.",
			Input:       json.RawMessage(`{"type":"object","properties":{"key":{"type":"string","minLength":1,"maxLength":255},"content":{"type":"string","maxLength":16384}},"required":["key","content"],"additionalProperties":false}`),
			Output:      json.RawMessage(`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`),
		},
	},
}

// remember carries out the operations of memoryManifest.
func (h hosted) remember(ctx context.Context, t *plugin.Target, call *plugin.Call) (plugin.Result, error) {
	failed := plugin.Result{Status: plugin.Failed}
	if call.Agent == "" {
		return failed, plugin.Errorf(plugin.CodeInvalidInput, "%s works only in the turn of an agent, whose memory it writes; mortise agents remember writes to it from here", t.Name())
	}
	of := h.t.Agents.Memory(call.Tenant, call.Agent)
	var in struct {
		Query, Key, Content string
		Limit               int
	}
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return failed, err // its schema was checked
	}
	var answer any
	if t.Operation.Name == "search" {
		if in.Limit == 0 {
			in.Limit = 10
		}
		rows, err := of.Search(ctx, in.Query, in.Limit)
		if err != nil {
			return failed, err
		}
		for _, row := range rows {
			failed.Labels = plugin.Labels(failed.Labels, row.Labels)
		}
		answer = map[string]any{"memories": agent.RememberedOf(rows)}
	} else {
		if call.Dry != nil {
			return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{"key":` + string(quoted(in.Key)) + `}`)}, nil
		}
		if err := of.Upsert(ctx, call.Session, in.Key, in.Content, call.Labels); err != nil {
			return failed, err
		}
		answer = map[string]any{"key": in.Key}
	}
	data, err := json.Marshal(answer)
	return plugin.Result{Status: plugin.Succeeded, Data: data, Labels: failed.Labels}, err
}

func quoted(text string) []byte {
	raw, _ := json.Marshal(text) // a string always has one
	return raw
}
