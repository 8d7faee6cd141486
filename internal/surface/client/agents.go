package client

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Agents implements [Host].
func (r *remote) Agents() Agents { return agents{r} }

type agents struct{ *remote }

// List implements [Agents].
func (a agents) List(ctx context.Context) ([]host.Agent, error) {
	return rowsOf[host.Agent](ctx, a.remote, "agents", nil, 0, "agents")
}

// settingsOf are settings as they are sent.
func settingsOf(s *host.AgentSettings) (out rest.AgentSettings, err error) {
	return out, json.Unmarshal([]byte(s.Encode()), &out)
}

// Create implements [Agents].
func (a agents) Create(ctx context.Context, n host.NewAgent) (made host.Agent, err error) {
	spec := rest.AgentSpec{ID: n.ID, Tier: n.Tier, Prompt: n.Prompt}
	if spec.Settings, err = settingsOf(&n.Settings); err != nil {
		return made, err
	}
	return made, a.post(ctx, spec, &made, "agents")
}

// Change implements [Agents]. Settings replace those that were there: they are changed as they
// were just seen.
func (a agents) Change(ctx context.Context, id string, c host.AgentChange) (made host.Agent, err error) {
	patch, tag := rest.AgentPatch{Tier: c.Tier, Prompt: c.Prompt}, ""
	if c.Settings != nil {
		settings, err := settingsOf(c.Settings)
		if err != nil {
			return made, err
		}
		patch.Settings = &settings
		header, err := a.do(ctx, asking{method: http.MethodGet, path: at("agents", id)}, nil)
		if err != nil {
			return made, err
		}
		tag = header.Get("ETag")
	}
	return made, a.change(ctx, http.MethodPatch, patch, &made, tag, "agents", id)
}

// Start implements [Agents].
func (a agents) Start(ctx context.Context, id string) (made host.Agent, err error) {
	return made, a.post(ctx, nil, &made, "agents", id+":start")
}

// Stop implements [Agents].
func (a agents) Stop(ctx context.Context, id string) (made host.Agent, err error) {
	return made, a.post(ctx, nil, &made, "agents", id+":stop")
}

// Delete implements [Agents].
func (a agents) Delete(ctx context.Context, id string) (gone host.Agent, err error) {
	return gone, a.change(ctx, http.MethodDelete, nil, &gone, "", "agents", id)
}

// Show implements [Agents].
func (a agents) Show(ctx context.Context, id string) (s host.AgentShown, err error) {
	var has rest.AgentOverview
	if err = a.get(ctx, &s.Agent, nil, "agents", id); err == nil {
		err = a.get(ctx, &has, nil, "agents", id, "overview")
	}
	if err != nil {
		return s, err
	}
	s.Plugins = each(has.Plugins, assignmentOf)
	s.Channels = each(has.Channels, func(d rest.AgentDelivery) host.ChannelPlace {
		c := s.Settings.Channels[d.Namespace]
		return host.ChannelPlace{Namespace: d.Namespace, Scheme: c.Scheme, Secret: c.Secret, Reply: c.Reply, Path: d.Path}
	})
	s.LeftOut = each(has.LeftOut, func(o rest.AgentOperation) host.LeftOut { return host.LeftOut{Operation: o.Operation, Why: o.Why} })
	s.Memories, s.Conversations = has.Memories, has.Conversations
	return s, nil
}

func assignmentOf(a rest.Assignment) host.Assignment { return host.Assignment(a) }

// Assignments implements [Agents].
func (a agents) Assignments(ctx context.Context, id string) (map[string]host.Assignment, error) {
	var all rest.Assignments
	err := a.get(ctx, &all, nil, "agents", id, "assignments")
	assigned := map[string]host.Assignment{}
	for _, one := range all.Assignments {
		assigned[one.Plugin] = assignmentOf(one)
	}
	return assigned, err
}

// Assign implements [Agents].
func (a agents) Assign(ctx context.Context, ref, id string, enabled bool) (host.Assignment, error) {
	name, versions := cutVersions(ref)
	path := []string{"agents", id, "assignments", name}
	if id == host.EveryAgent {
		path = []string{"assignments", name}
	}
	var made rest.Assignment
	err := a.change(ctx, http.MethodPut, rest.AssignmentSpec{Enabled: enabled, Versions: versions}, &made, "", path...)
	return assignmentOf(made), err
}

// Memories implements [Agents]: the newest first, or what has most of the words.
func (a agents) Memories(ctx context.Context, id, words string, limit int) ([]host.Memory, error) {
	query, most := url.Values{}, 0
	if words != "" { // they are one page
		query.Set("search", words)
		most = min(limit, largestPage)
	}
	all, err := rowsOf[host.Memory](ctx, a.remote, "memories", query, most, "agents", id, "memories")
	if words == "" {
		slices.SortStableFunc(all, func(x, y host.Memory) int { return y.UpdatedAt.Compare(x.UpdatedAt) })
	}
	return append([]host.Memory{}, all[:min(len(all), limit)]...), err
}

// Remember implements [Agents].
func (a agents) Remember(ctx context.Context, id, key, text string) error {
	return a.post(ctx, rest.MemorySpec{MemoryKey: rest.MemoryKey{Key: key}, Content: text}, nil, "agents", id, "memories:remember")
}

// Forget implements [Agents].
func (a agents) Forget(ctx context.Context, id, key string) error {
	return a.post(ctx, rest.MemoryKey{Key: key}, nil, "agents", id, "memories:forget")
}

// Schedule implements [Agents].
func (a agents) Schedule(ctx context.Context, id, prompt, spec, zone string) (made host.Feed, err error) {
	return made, a.post(ctx, struct {
		Text string `json:"text"`
		rest.Times
	}{prompt, rest.Times{Spec: spec, Zone: zone}}, &made, "agents", id, "feeds")
}

func conversationOf(c rest.Conversation) host.Conversation {
	return host.Conversation{
		Session: c.ID, Agent: c.Agent, Channel: c.Channel, Room: c.Room, Peer: c.Peer, Open: c.Open, Turns: c.Turns, Waiting: c.Waiting, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

// Conversations implements [Agents].
func (a agents) Conversations(ctx context.Context, id string, limit int) ([]host.Conversation, error) {
	rows, err := rowsOf[rest.Conversation](ctx, a.remote, "conversations", nil, limit, "agents", id, "conversations")
	return each(rows, conversationOf), err
}

// Messages implements [Agents].
func (a agents) Messages(ctx context.Context, id, session string, limit int) (host.Conversation, []host.Spoken, error) {
	var c struct {
		rest.Conversation
		Messages []host.Spoken `json:"messages"`
	}
	err := a.get(ctx, &c, url.Values{"last": {strconv.Itoa(min(limit, largestPage))}}, "agents", id, "conversations", session)
	return conversationOf(c.Conversation), append([]host.Spoken{}, c.Messages...), err
}

// End implements [Agents].
func (a agents) End(ctx context.Context, id, session string) (host.Conversation, error) {
	path := []string{"agents", id, "conversations:end"}
	if session != "" {
		path = []string{"agents", id, "conversations", session + ":end"}
	}
	var c rest.Conversation
	err := a.post(ctx, nil, &c, path...)
	return conversationOf(c), err
}
