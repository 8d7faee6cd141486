package view

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Agents are agents as they are listed.
var Agents = List[host.Agent]{
	Key:    "agents",
	Titles: []string{"AGENT", "STATE", "TIER", "CHANNELS", "CREATED", "PROMPT"},
	Fit:    Always,
	Row: func(a host.Agent) []string {
		channels := strings.Join(slices.Sorted(maps.Keys(a.Settings.Channels)), " ")
		return []string{a.ID, string(a.State), terminal.Dash(a.Tier), terminal.Dash(channels), terminal.Clock(a.CreatedAt), terminal.Dash(terminal.OneLine(a.Prompt, 200))}
	},
}

// Memories are what an agent remembers.
var Memories = List[host.Memory]{
	Key:    "memories",
	Titles: []string{"KEY", "CHANGED", "LABELS", "TEXT"},
	Fit:    Always,
	Row: func(m host.Memory) []string {
		return []string{m.Key, terminal.Clock(m.UpdatedAt), terminal.Dash(strings.Join(m.Labels, " ")), terminal.OneLine(m.Content, 1000)}
	},
}

// Agent shows an agent: its settings, its plugins and its channels.
func Agent(w io.Writer, s host.AgentShown) error {
	t := terminal.Details(w)
	t.Row("agent", s.ID)
	t.Row("state", string(s.State))
	t.Row("tier", cmp.Or(s.Tier, "the host's choice"))
	t.Row("prompt", cmp.Or(terminal.OneLine(s.Prompt, 500), "the usual one"))
	limits := s.Settings
	limits.Channels = nil
	raw, err := json.Marshal(limits, json.Deterministic(true))
	if err != nil {
		return err
	}
	t.Row("limits", cmp.Or(strings.Trim(string(raw), "{}"), "the usual ones"))
	t.Row("memories", strconv.Itoa(s.Memories))
	t.Row("open conversations", strconv.Itoa(s.Conversations))
	t.Row("created", terminal.Clock(s.CreatedAt)+" by "+s.CreatedBy)
	t.Row("changed", terminal.Clock(s.UpdatedAt))
	return errors.Join(t.Flush(),
		agentPlugins.below(w, s.Plugins),
		leftOut.below(w, s.LeftOut),
		channels.below(w, s.Channels))
}

// Scheduled says when an agent is asked.
func Scheduled(agent string, f host.Feed) string {
	return fmt.Sprintf("%s is asked %s%s, first at %s, while it is started and 'mortise serve' runs", agent, f.Spec, inZone(f), terminal.Clock(*f.Next))
}

var agentPlugins = List[host.Assignment]{
	Titles: []string{"PLUGIN", "VERSIONS", "ASSIGNED TO", "BY"},
	Row: func(a host.Assignment) []string {
		return []string{a.Plugin, terminal.Dash(a.Versions), assignedTo(a), a.By}
	},
}

var leftOut = List[host.LeftOut]{
	Titles: []string{"NOT OFFERED", "WHY"},
	Row:    func(l host.LeftOut) []string { return []string{l.Operation, terminal.OneLine(l.Why, 500)} },
}

var channels = List[host.ChannelPlace]{
	Titles: []string{"CHANNEL", "SCHEME", "SECRET", "REPLY", "WEBHOOK"},
	Row: func(p host.ChannelPlace) []string {
		return []string{p.Namespace, string(p.Scheme), p.Secret, terminal.Dash(p.Reply), p.Path}
	},
}

// assignedTo says whom a plugin was given to.
func assignedTo(a host.Assignment) string {
	if a.Agent == host.EveryAgent {
		return "all agents"
	}
	return a.Agent
}
