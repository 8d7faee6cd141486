package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

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
			return c.reach(cmd.Context(), inHost, func(q *ask) error {
				if _, err := q.Plugins().Show(cmd.Context(), args[0]); err != nil {
					return view.WithNext(err)
				}
				assigned, err := q.Agents().Assign(cmd.Context(), args[0], id, enabled)
				if err != nil {
					return err
				}
				return c.did(done{value: map[string]any{"assignment": assigned}, said: view.Assigned(assigned)})
			})
		}
	}
}

// listAssigned lists plugins with what is said of them for one agent.
func (c *command) listAssigned(infos []host.PluginInfo, assigned map[string]host.Assignment) error {
	lines := make([]view.AssignedPlugin, len(infos))
	for i, info := range infos {
		lines[i].PluginInfo = info
		if one, found := assigned[info.Name]; found {
			lines[i].Assignment = &one
		}
	}
	return rowsOf(c, view.AssignedPlugins, lines)
}
