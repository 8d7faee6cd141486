package toolset

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/plugin"
)

// chatManifest is the plugin by which an agent is asked like any operation. That
// it has an effect keeps it from those whom no policy allows it: what the agent
// does in its turn is judged call by call all the same.
var chatManifest = &plugin.Manifest{
	Name: "agent.chat", Version: version.Host, Owner: "mortise", Description: "Asks an agent.",
	Dialect: "native", Isolation: plugin.IsolationAgent, Runner: plugin.Runner{Kind: "host", Protocol: "2"}, Feed: plugin.Feed{Default: "turn", Allowed: []string{"turn"}},
	Operations: []*plugin.Operation{{
		Name: "turn", Kind: plugin.Operator, Timeout: 15 * time.Minute, Effects: []string{"agent_turn"},
		Description: "One turn of an agent: it answers, and uses its tools on the way.",
		Input:       json.RawMessage(`{"type":"object","properties":{"agent":{"type":"string","minLength":1,"maxLength":64},"text":{"type":"string","minLength":1,"maxLength":65536}},"required":["agent","text"],"additionalProperties":false}`),
		Output:      json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"uses":{"type":"array"}},"required":["text"]}`),
	}},
}

// chat carries out the operation of chatManifest.
func (h hosted) chat(ctx context.Context, _ *plugin.Target, call *plugin.Call) (plugin.Result, error) {
	failed := plugin.Result{Status: plugin.Failed}
	var in struct{ Agent, Text string }
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return failed, err // its schema was checked
	}
	if call.Dry != nil {
		return failed, plugin.Errorf(plugin.CodeUnavailable, "what an agent would do cannot be known without asking it")
	}
	var answer agent.Answer
	var err error
	if call.Origin == plugin.OriginFeed {
		var decided struct {
			Exec struct {
				Schedule string `json:"schedule_id"`
			} `json:"exec"`
		}
		if len(call.Overlay) > 0 {
			if err := json.Unmarshal(call.Overlay, &decided); err != nil {
				return failed, err // the host wrote it
			}
		}
		answer, err = h.t.Agents.Fire(ctx, call, in.Agent, decided.Exec.Schedule, "cron", in.Text)
	} else {
		answer, err = h.t.Agents.Ask(ctx, call, in.Agent, in.Text)
	}
	if err != nil {
		failed.Labels = answer.Labels // of what the turn had read when it failed
		return failed, err
	}
	data, err := json.Marshal(answer)
	return plugin.Result{Status: plugin.Succeeded, Data: data, Labels: answer.Labels}, err
}
