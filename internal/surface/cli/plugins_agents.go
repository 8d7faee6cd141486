package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// agentFlag adds a flag that names an agent.
func (c *command) agentFlag(cmd *cobra.Command, id *string, use string) {
	cmd.Flags().StringVar(id, "agent", "", use)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.agentIDs(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

// forAgents gives a command that switches a plugin for all callers the flags that make
// it give the plugin to agents, or take it from them.
func (c *command) forAgents(enabled bool) func(*cobra.Command) {
	var id string
	var all bool
	what := "take it from"
	if enabled {
		what = "give it to"
	}
	return func(cmd *cobra.Command) {
		c.agentFlag(cmd, &id, what+" this agent")
		cmd.Flags().BoolVar(&all, "all", false, what+" all agents, those that are made later too")
		everyone := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			switch {
			case id == "" && cmd.Flags().Changed("agent"):
				return usage{errors.New("--agent is empty; it names an agent")}
			case id == "" && !all:
				return everyone(cmd, args)
			case id != "" && all:
				return onlyOne("--agent", "--all")
			case all:
				id = host.EveryAgent
			}
			return inHost(c, cmd.Context(), func(q *ask) error {
				if _, err := q.Plugins().Show(cmd.Context(), args[0]); err != nil {
					return withNext(err)
				}
				assigned, err := q.Agents().Assign(cmd.Context(), args[0], id, enabled)
				if err != nil {
					return err
				}
				return c.did(done{value: map[string]any{"assignment": assigned}, said: assignmentSaid(assigned)})
			})
		}
	}
}

func assignmentSaid(a host.Assignment) string {
	name := a.Plugin
	if a.Versions != "" {
		name += "@" + a.Versions
	}
	switch {
	case a.Agent == host.EveryAgent && a.Enabled:
		return "all agents have " + name + ", but for those it is taken from"
	case a.Agent == host.EveryAgent:
		return name + " is no longer what all agents have"
	case a.Enabled:
		return "agent " + a.Agent + " has " + name
	}
	return "agent " + a.Agent + " does not have " + name
}

// listAssigned lists plugins with what is said of them for one agent.
func (c *command) listAssigned(infos []host.PluginInfo, assigned map[string]host.Assignment) error {
	type line struct {
		host.PluginInfo
		Assignment *host.Assignment `json:"assignment"` // null where nothing is said
	}
	lines := make([]line, len(infos))
	for i, info := range infos {
		lines[i].PluginInfo = info
		if one, found := assigned[info.Name]; found {
			lines[i].Assignment = &one
		}
	}
	return listing[line]{
		key:    "plugins",
		titles: []string{"PLUGIN", "VERSION", "STATE", "ASSIGNED", "DESCRIPTION"},
		row: func(l line) []string {
			said := "-"
			switch one := l.Assignment; {
			case one == nil:
			case !one.Enabled && one.Agent != host.EveryAgent:
				said = "taken from it"
			case one.Enabled:
				said = "to " + assignedTo(*one)
				if one.Versions != "" {
					said += ", " + one.Versions
				}
			}
			return []string{l.Name, l.Version, stateOfPlugin(l.PluginInfo), said, terminal.OneLine(l.Description, 60)}
		},
	}.show(c, onScreen, lines)
}
