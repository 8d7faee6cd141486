package rest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// An Agent is an agent.
type Agent struct {
	ID        string        `json:"id"`
	State     string        `json:"state" enum:"running,stopped"`
	Tier      string        `json:"tier" doc:"Of models; the host's choice where it is empty."`
	Prompt    string        `json:"prompt" doc:"The usual one where it is empty."`
	Settings  AgentSettings `json:"settings"`
	CreatedBy string        `json:"created_by"`
	CreatedAt time.Time     `json:"created_at"`
	UpdatedAt time.Time     `json:"updated_at"`
}

// AgentSettings are what an agent may do, and where it can be talked to. The host's
// values stand for those that are left out.
type AgentSettings struct {
	MaxSteps  int                     `json:"max_steps,omitzero" doc:"Moves of its model in one turn; 8."`
	MaxTools  int                     `json:"max_tools,omitzero" doc:"Operations that it is offered in one turn; 5."`
	MaxTokens int                     `json:"max_tokens,omitzero" doc:"Of one answer; 2,048."`
	History   int                     `json:"history,omitzero" doc:"Messages that its model is shown; 60."`
	Channels  map[string]AgentChannel `json:"channels,omitzero" doc:"By namespace."`

	Brain       string `json:"brain,omitzero" maxLength:"401" doc:"The operation of kind agent that decides in place of a model."`
	LateResults string `json:"late_results,omitzero" maxLength:"16" doc:"What follows a call that ended after its turn: turn or tell."`
}

// An AgentChannel is a place outside where people talk to an agent.
type AgentChannel struct {
	Scheme string   `json:"scheme" maxLength:"64" doc:"How its deliveries prove who sent them."`
	Secret string   `json:"secret" maxLength:"256" doc:"The name of the secret that they prove it with."`
	Reply  string   `json:"reply,omitzero" maxLength:"256" doc:"The operation that carries answers there."`
	Labels []string `json:"labels,omitzero" maxItems:"2" nullable:"false" doc:"Of what comes in, beside untrusted."`
	End    []string `json:"end,omitzero" maxItems:"16" nullable:"false" doc:"Messages that end the conversation in place of having a turn."`
	Per    string   `json:"per,omitzero" maxLength:"16" doc:"Whose each conversation is: sender or room."`
}

// Agents are a page of them.
type Agents struct {
	Agents []Agent `json:"agents" nullable:"false"`
	Next   string  `json:"next_page_token" doc:"Empty on the last page."`
}

// An AgentOverview is what an agent has.
type AgentOverview struct {
	Agent         string           `json:"agent"`
	Plugins       []Assignment     `json:"plugins" nullable:"false" doc:"That it has, each by what counts."`
	Channels      []AgentDelivery  `json:"channels" nullable:"false" doc:"Where deliveries go."`
	LeftOut       []AgentOperation `json:"left_out" nullable:"false" doc:"Operations that its model is not offered in a conversation with the caller."`
	Memories      int              `json:"memories"`
	Conversations int              `json:"open_conversations"`
}

// An AgentDelivery is where the deliveries of a channel go.
type AgentDelivery struct {
	Namespace string `json:"namespace"`
	Path      string `json:"path"`
}

// An AgentOperation is one that a model is not offered.
type AgentOperation struct {
	Operation string `json:"operation"`
	Why       string `json:"why"`
}

// An AgentNamed is an agent that is meant.
type AgentNamed struct {
	ID string `path:"id" maxLength:"64"`
}

// An AgentSpec is an agent that is to be.
type AgentSpec struct {
	ID       string        `json:"id" maxLength:"64"`
	Tier     string        `json:"tier,omitzero" maxLength:"64"`
	Prompt   string        `json:"prompt,omitzero" maxLength:"32768"`
	Settings AgentSettings `json:"settings,omitzero"`
}

// An AgentPatch is what is to be another. What is left out stays as it is.
type AgentPatch struct {
	Tier     *string        `json:"tier,omitzero" maxLength:"64" nullable:"false"`
	Prompt   *string        `json:"prompt,omitzero" maxLength:"32768" nullable:"false"`
	Settings *AgentSettings `json:"settings,omitzero" doc:"As a whole, so that If-Match is needed: channels say who may talk to the agent."`
}

func agentOf(a host.Agent) (Agent, error) {
	out := Agent{ID: a.ID, State: string(a.State), Tier: a.Tier, Prompt: a.Prompt, CreatedBy: a.CreatedBy, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt}
	return out, json.Unmarshal([]byte(a.Settings.Encode()), &out.Settings)
}

func (r *registry) agents() {
	add(r, route{method: "GET", path: "agents", id: "list-agents", scope: host.ScopeRead, about: "The agents, by id"}, r.listAgents)
	add(r, route{method: "POST", path: "agents", id: "create-agent", scope: host.ScopeConfigure, about: "Make an agent, which is stopped"}, r.createAgent)
	add(r, route{method: "GET", path: "agents/{id}", id: "get-agent", scope: host.ScopeRead, about: "An agent"}, r.getAgent)
	add(r, route{method: "PATCH", path: "agents/{id}", id: "change-agent", scope: host.ScopeConfigure, about: "Make an agent another; conversations see it at their next turn"}, r.changeAgent)
	add(r, route{method: "DELETE", path: "agents/{id}", id: "delete-agent", scope: host.ScopeConfigure, about: "Delete an agent, with what it remembers, what it was given and its feeds"}, r.turnAgent(host.Agents.Delete))
	add(r, route{method: "POST", path: "agents/{id}:start", id: "start-agent", scope: host.ScopeConfigure, about: "Let an agent take the messages of its channels"}, r.turnAgent(host.Agents.Start))
	add(r, route{method: "POST", path: "agents/{id}:stop", id: "stop-agent", scope: host.ScopeConfigure, about: "Let an agent take no more of them; a turn that was begun goes on"}, r.turnAgent(host.Agents.Stop))
	add(r, route{method: "GET", path: "agents/{id}/overview", id: "get-agent-overview", scope: host.ScopeRead, about: "What an agent has"}, r.getOverview)
	r.assignments()
	r.memories()
	r.conversations()
}

func (r *registry) listAgents(ctx context.Context, q *request, in *struct{ Page }) (*struct{ Body Agents }, error) {
	last, err := in.after("agents")
	if err != nil {
		return nil, err
	}
	all, err := q.api.Agents().List(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Agents }{Agents{Agents: []Agent{}}}
	for _, a := range all {
		if a.ID <= last {
			continue
		}
		agent, err := agentOf(a)
		if err != nil {
			return nil, err
		}
		out.Body.Agents = append(out.Body.Agents, agent)
	}
	out.Body.Agents, out.Body.Next = cut(out.Body.Agents, in.size(), "", func(a *Agent) string { return a.ID }, "agents")
	return out, nil
}

// agent returns an agent as it is answered.
func (q *request) agent(id string) func(ctx context.Context) (Agent, error) {
	return func(ctx context.Context) (Agent, error) { return answeredAgent(id)(q.api.Agents().Get(ctx, id)) }
}

// answeredAgent returns an agent as it is answered, where there is no error.
func answeredAgent(id string) func(a host.Agent, err error) (Agent, error) {
	return func(a host.Agent, err error) (Agent, error) {
		if err != nil {
			return Agent{}, unlessMissing(err, "agent", id)
		}
		return agentOf(a)
	}
}

func (r *registry) getAgent(ctx context.Context, q *request, in *struct {
	AgentNamed
	Seen
}) (*Tagged[Agent], error) {
	a, err := q.agent(in.ID)(ctx)
	if err != nil {
		return nil, err
	}
	return tagged(q, a)
}

func (r *registry) createAgent(ctx context.Context, q *request, in *struct{ Body AgentSpec }) (*Tagged[Agent], error) {
	n := host.NewAgent{ID: in.Body.ID, Tier: in.Body.Tier, Prompt: in.Body.Prompt}
	var err error
	if n.Settings, err = settingsOf(&in.Body.Settings); err != nil {
		return nil, err
	}
	a, err := answeredAgent(n.ID)(q.api.Agents().Create(ctx, n))
	if err != nil {
		return nil, err
	}
	return tagged(q, a)
}

// settingsOf checks settings as those are checked that people write.
func settingsOf(s *AgentSettings) (set host.AgentSettings, err error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return set, err
	}
	return host.ParseAgentSettings(raw)
}

func (r *registry) changeAgent(ctx context.Context, q *request, in *struct {
	AgentNamed
	Match
	Body AgentPatch
}) (*Tagged[Agent], error) {
	c := host.AgentChange{Tier: in.Body.Tier, Prompt: in.Body.Prompt}
	if in.Body.Settings != nil {
		if err := unseen(q, "settings"); err != nil {
			return nil, err
		}
		settings, err := settingsOf(in.Body.Settings)
		if err != nil {
			return nil, err
		}
		c.Settings = &settings
	}
	a, err := change(ctx, q, host.Thing{Noun: host.AnAgent, ID: in.ID}, q.agent(in.ID), func(ctx context.Context) (Agent, error) {
		return answeredAgent(in.ID)(q.api.Agents().Change(ctx, in.ID, c))
	})
	if err != nil {
		return nil, err
	}
	return tagged(q, a)
}

// An AgentTurned is an agent that is to start, stop or go.
type AgentTurned struct {
	AgentNamed
	Match
}

// turnAgent is a change that takes no more than the agent's id.
func (r *registry) turnAgent(do func(host.Agents, context.Context, string) (host.Agent, error)) func(context.Context, *request, *AgentTurned) (*Tagged[Agent], error) {
	return func(ctx context.Context, q *request, in *AgentTurned) (*Tagged[Agent], error) {
		a, err := change(ctx, q, host.Thing{Noun: host.AnAgent, ID: in.ID}, q.agent(in.ID), func(ctx context.Context) (Agent, error) {
			return answeredAgent(in.ID)(do(q.api.Agents(), ctx, in.ID))
		})
		if err != nil {
			return nil, err
		}
		return tagged(q, a)
	}
}

func (r *registry) getOverview(ctx context.Context, q *request, in *AgentNamed) (*struct{ Body AgentOverview }, error) {
	s, err := q.api.Agents().Show(ctx, in.ID)
	if err != nil {
		return nil, unlessMissing(err, "agent", in.ID)
	}
	out := &struct{ Body AgentOverview }{AgentOverview{
		Agent: s.ID, Plugins: []Assignment{}, Channels: []AgentDelivery{}, LeftOut: []AgentOperation{}, Memories: s.Memories, Conversations: s.Conversations,
	}}
	for _, a := range s.Plugins {
		out.Body.Plugins = append(out.Body.Plugins, Assignment(a))
	}
	for _, c := range s.Channels {
		out.Body.Channels = append(out.Body.Channels, AgentDelivery{c.Namespace, c.Path})
	}
	for _, l := range s.LeftOut {
		out.Body.LeftOut = append(out.Body.LeftOut, AgentOperation{l.Operation, l.Why})
	}
	return out, nil
}
