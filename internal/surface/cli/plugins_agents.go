package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// agentFlag adds a flag that names an agent.
func (c *command) agentFlag(cmd *cobra.Command, id *string, use string) {
	cmd.Flags().StringVar(id, "agent", "", use)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.agentIDs(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

// forAgents has a command that switches a plugin for everybody give it to agents,
// or take it from them, where it is told so.
func (c *command) forAgents(cmd *cobra.Command, enabled bool) *cobra.Command {
	var id string
	var all bool
	what := "take it from"
	if enabled {
		what = "give it to"
	}
	c.agentFlag(cmd, &id, what+" this agent")
	cmd.Flags().BoolVar(&all, "all", false, what+" all agents, those that are made later too")
	everybody := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case id == "" && cmd.Flags().Changed("agent"):
			return usage{errors.New("--agent is empty; it names an agent")}
		case id == "" && !all:
			return everybody(cmd, args)
		case id != "" && all:
			return usage{errors.New("--agent and --all: only one of them")}
		case all:
			id = store.EveryAgent
		}
		return c.withHost(cmd.Context(), func(a *app.App) error {
			if _, err := a.As(c.principal(a)).Plugins().Show(cmd.Context(), args[0]); err != nil {
				return withNext(err)
			}
			done, err := a.As(c.principal(a)).Agents().Assign(cmd.Context(), args[0], id, enabled)
			if err != nil {
				return err
			}
			if c.json {
				return c.print(map[string]any{"assignment": done})
			}
			_, err = fmt.Fprintln(c.out, assignmentSaid(done))
			return err
		})
	}
	return cmd
}

func assignmentSaid(a host.Assignment) string {
	name := a.Plugin
	if a.Versions != "" {
		name += "@" + a.Versions
	}
	switch {
	case a.Agent == store.EveryAgent && a.Enabled:
		return "all agents have " + terminal.Safe(name) + ", but for those it is taken from"
	case a.Agent == store.EveryAgent:
		return terminal.Safe(name) + " is no longer what all agents have"
	case a.Enabled:
		return "agent " + a.Agent + " has " + terminal.Safe(name)
	}
	return "agent " + a.Agent + " does not have " + terminal.Safe(name)
}

// listAssigned lists plugins with what is said of them for one agent.
func (c *command) listAssigned(infos []registry.Info, assigned map[string]host.Assignment) error {
	type line struct {
		registry.Info
		Assignment *host.Assignment `json:"assignment"` // null where nothing is said
	}
	lines := make([]line, len(infos))
	for i, info := range infos {
		lines[i].Info = info
		if one, found := assigned[info.Name]; found {
			lines[i].Assignment = &one
		}
	}
	if c.json {
		return c.print(map[string]any{"plugins": lines})
	}
	t := terminal.NewTable(c.out, "PLUGIN", "VERSION", "STATE", "ASSIGNED", "DESCRIPTION")
	if c.onTerminal() {
		t.Fit = c.width()
	}
	for _, l := range lines {
		said := "-"
		switch one := l.Assignment; {
		case one == nil:
		case !one.Enabled && one.Agent != store.EveryAgent:
			said = "taken from it"
		case one.Enabled:
			said = "to " + assignedTo(*one)
			if one.Versions != "" {
				said += ", " + one.Versions
			}
		}
		t.Row(l.Name, l.Version, stateOfPlugin(l.Info), said, terminal.OneLine(l.Description, 60))
	}
	return t.Flush()
}
