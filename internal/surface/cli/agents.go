package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) agents() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "agents",
		Aliases: []string{"agent"},
		Short:   "Make agents, and look after them",
		Long: `Make agents, and look after them.

An agent has a prompt, plugins of its own, a memory and conversations. Each use of a
tool is a call like any other, with the rights of the user in the conversation.
'mortise chat' talks to one at the terminal, 'mortise plugins enable NAME --agent ID'
gives it a plugin. These commands need the right to configure mortise.agents; each
change is an entry of the ledger.`,
	}
	cmd.AddCommand(c.agentsCreate(), c.agentsList(), c.agentsShow(), c.agentsSet(),
		c.agentsChange("start ID", "Let an agent take messages of its channels, and the times of its schedules", "is running", host.Agents.Start),
		c.agentsChange("stop ID", "Let an agent take no more messages; a turn that was begun goes on", "is stopped", host.Agents.Stop),
		c.agentsChange("delete ID", "Take an agent away, with its memory, its schedules and what it was given; what was said with it stays", "is deleted", host.Agents.Delete),
		c.agentsMemory(), c.agentsRemember(), c.agentsForget(), c.agentsConversations(), c.agentsEnd(), c.agentsSchedule())
	return cmd
}

// agentFlags are the flags of `mortise agents create` and `set`.
type agentFlags struct {
	prompt, promptFile string
	tier, settings     string
}

func (f *agentFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.prompt, "prompt", "", "who it is, in the words of its own prompt; the usual one if empty")
	flags.StringVar(&f.promptFile, "prompt-file", "", "the same from a file; - for standard input")
	flags.StringVar(&f.tier, "tier", "", "of the models that it thinks with: light or heavy; the host's choice if empty")
	flags.StringVar(&f.settings, "settings", "", "its limits and channels: a file of JSON; - for standard input")
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions([]string{"light", "heavy"}, cobra.ShellCompDirectiveNoFileComp))
}

// agentChange is what the flags ask for, as far as they are given.
func (c *command) agentChange(cmd *cobra.Command, f *agentFlags) (change host.AgentChange, err error) {
	if f.promptFile == "-" && f.settings == "-" {
		return change, usage{errors.New("--prompt-file - and --settings -: standard input has one of them")}
	}
	flags := cmd.Flags()
	if flags.Changed("prompt") && flags.Changed("prompt-file") {
		return change, usage{errors.New("--prompt and --prompt-file: only one of them")}
	}
	if flags.Changed("tier") {
		change.Tier = &f.tier
	}
	if flags.Changed("prompt") {
		change.Prompt = &f.prompt
	}
	if flags.Changed("prompt-file") {
		raw, err := c.readSmall("the prompt", f.promptFile)
		if err != nil {
			return change, err
		}
		text := strings.TrimSpace(string(raw))
		change.Prompt = &text
	}
	if flags.Changed("settings") {
		raw, err := c.readSmall("the settings", f.settings)
		if err != nil {
			return change, err
		}
		settings, err := agent.ParseSettings(raw)
		if err != nil {
			return change, err
		}
		change.Settings = &settings
	}
	return change, nil
}

// maxSmall bounds the files of prompts and settings; both have closer bounds.
const maxSmall = 1 << 20

// readSmall reads a file that was written by hand.
func (c *command) readSmall(what, path string) (raw []byte, err error) {
	if path == "-" {
		raw, err = io.ReadAll(io.LimitReader(c.in, maxSmall+1))
	} else if file, openErr := os.Open(path); openErr == nil {
		raw, err = io.ReadAll(io.LimitReader(file, maxSmall+1))
		file.Close()
	} else {
		err = openErr
	}
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "reading %s: %w", what, err)
	}
	if len(raw) > maxSmall {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "%s in %s has more than %d MiB", what, path, maxSmall>>20)
	}
	return raw, nil
}

func (c *command) agentsCreate() *cobra.Command {
	var f agentFlags
	var brain string
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Make an agent, which is stopped and has the plugins that all agents have",
		Example: `  mortise agents create support --prompt "You help customers of a bakery."
  mortise plugins enable orders --agent support
  mortise chat support`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if brain != "" {
				return plugin.Errorf(plugin.CodeInvalidInput, "--brain %.80s: agents think with the host's own chat for now, and no operation can take its place; leave --brain out", brain)
			}
			change, err := c.agentChange(cmd, &f)
			if err != nil {
				return err
			}
			n := host.NewAgent{ID: args[0], Tier: f.tier}
			if change.Prompt != nil {
				n.Prompt = *change.Prompt
			}
			if change.Settings != nil {
				n.Settings = *change.Settings
			}
			return c.withHost(cmd.Context(), func(a *app.App) error {
				made, err := a.As(c.principal(a)).Agents().Create(cmd.Context(), n)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(made)
				}
				if _, err := fmt.Fprintf(c.out, "agent %s is made\n", made.ID); err != nil {
					return err
				}
				c.say("'mortise plugins enable NAME --agent %s' gives it a plugin, 'mortise chat %s' talks to it", made.ID, made.ID)
				if len(made.Settings.Channels) > 0 {
					c.say("'mortise agents start %s' lets it take messages of its channels", made.ID)
				}
				return nil
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&brain, "brain", "", "an operation that decides in place of the host's own chat; not yet")
	return c.withJSON(cmd)
}

func (c *command) agentsSet() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Change the prompt, the tier or the settings of an agent; what is not given stays",
		Example: `  mortise agents set support --prompt-file support.md
  mortise agents set support --settings support.json --tier heavy`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := c.agentChange(cmd, &f)
			if err != nil {
				return err
			}
			if change == (host.AgentChange{}) {
				return usage{errors.New("nothing is to be another; say --prompt, --prompt-file, --tier or --settings")}
			}
			return c.withHost(cmd.Context(), func(a *app.App) error {
				made, err := a.As(c.principal(a)).Agents().Change(cmd.Context(), args[0], change)
				if err != nil {
					return err
				}
				return c.changedAgent(made, "is changed")
			})
		},
	}
	f.add(cmd)
	return c.withJSON(cmd)
}

func (c *command) changedAgent(a host.Agent, done string) error {
	if c.json {
		return c.print(a)
	}
	_, err := fmt.Fprintf(c.out, "agent %s %s\n", a.ID, done)
	return err
}

// agentsChange is a command that changes one agent.
func (c *command) agentsChange(use, short, done string, change func(host.Agents, context.Context, string) (host.Agent, error)) *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:               use,
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				changed, err := change(a.As(c.principal(a)).Agents(), cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.changedAgent(changed, done)
			})
		},
	})
}

func (c *command) agentsList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the agents there are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				all, err := a.As(c.principal(a)).Agents().List(cmd.Context())
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"agents": all})
				}
				t := terminal.NewTable(c.out, "AGENT", "STATE", "TIER", "CHANNELS", "CREATED", "PROMPT")
				t.Fit = c.width()
				for _, one := range all {
					t.Row(one.ID, string(one.State), terminal.Dash(one.Tier), terminal.Dash(strings.Join(channelsOf(one), " ")), terminal.Clock(one.CreatedAt), terminal.Dash(terminal.OneLine(one.Prompt, 200)))
				}
				return t.Flush()
			})
		},
	})
}

func channelsOf(a host.Agent) []string {
	var names []string
	for name := range a.Settings.Channels {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *command) agentsShow() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:               "show ID",
		Short:             "Show an agent: its plugins and by what it has them, its channels, what it remembers",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				shown, err := a.As(c.principal(a)).Agents().Show(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if c.json {
					return c.print(shown)
				}
				return c.showAgent(&shown)
			})
		},
	})
}

func (c *command) showAgent(s *host.AgentShown) error {
	t := terminal.Details(c.out)
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
	if err := t.Flush(); err != nil {
		return err
	}
	if len(s.Plugins) > 0 {
		fmt.Fprintln(c.out)
		t = terminal.NewTable(c.out, "PLUGIN", "VERSIONS", "ASSIGNED TO", "BY")
		for _, p := range s.Plugins {
			t.Row(p.Plugin, terminal.Dash(p.Versions), assignedTo(p), p.By)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(s.LeftOut) > 0 {
		fmt.Fprintln(c.out)
		t = terminal.NewTable(c.out, "NOT OFFERED", "WHY")
		for _, l := range s.LeftOut {
			t.Row(l.Operation, terminal.OneLine(l.Why, 500))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(s.Channels) > 0 {
		fmt.Fprintln(c.out)
		t = terminal.NewTable(c.out, "CHANNEL", "SCHEME", "SECRET", "REPLY", "WEBHOOK")
		for _, ch := range s.Channels {
			t.Row(ch.Namespace, string(ch.Scheme), ch.Secret, terminal.Dash(ch.Reply), ch.Path)
		}
		return t.Flush()
	}
	return nil
}

// assignedTo says whom a plugin was given to.
func assignedTo(a host.Assignment) string {
	if a.Agent == store.EveryAgent {
		return "all agents"
	}
	return a.Agent
}

func (c *command) agentsSchedule() *cobra.Command {
	var cron, every, zone, prompt string
	cmd := &cobra.Command{
		Use:   "schedule ID",
		Short: "Have an agent asked at set times, and print the id of the feed that does it",
		Long: `Have an agent asked at set times, in a conversation of its own each, and print the id
of the feed that does it. The turns have the rights of the feed's owner: you.
'mortise serve' makes them while the agent is started; 'mortise feeds' shows, pauses
and deletes it.`,
		Example:           `  mortise agents schedule support --cron "0 7 * * 1-5" --zone Europe/Berlin --prompt "Sum up the open orders."`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			spec := "cron " + cron
			switch {
			case (cron == "") == (every == ""):
				return usage{errors.New("at which times? --cron or --every, one of them")}
			case every != "" && zone != "":
				return usage{errors.New("--zone is for --cron: an interval is the same everywhere")}
			case prompt == "":
				return usage{errors.New("what is it to be asked? --prompt says")}
			case every != "":
				spec = "every " + every
			}
			return c.withHost(cmd.Context(), func(a *app.App) error {
				feed, err := a.As(c.principal(a)).Agents().Schedule(cmd.Context(), args[0], prompt, spec, zone)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(feed)
				}
				if _, err := fmt.Fprintln(c.out, feed.ID); err != nil {
					return err
				}
				c.say("%s is asked %s%s, first at %s, while it is started and 'mortise serve' runs", args[0], feed.Spec, inZone(feed), terminal.Clock(*feed.Next))
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cron, "cron", "", "five fields: minute, hour, day, month, weekday")
	flags.StringVar(&every, "every", "", "the interval: 15m, 1h30m")
	flags.StringVar(&zone, "zone", "", "the time zone of --cron, such as Europe/Berlin; UTC if empty")
	flags.StringVar(&prompt, "prompt", "", "what it is asked")
	return c.withJSON(cmd)
}

// completeAgents offers the agents.
func (c *command) completeAgents(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		ids = c.agentIDs(cmd)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (c *command) agentIDs(cmd *cobra.Command) (ids []string) {
	c.completingAll(cmd, func(st store.Reader, tenant string) {
		rows, _ := st.Agents(cmd.Context(), tenant)
		for _, row := range rows {
			ids = append(ids, row.ID+"\t"+terminal.OneLine(string(row.State)+" "+row.Prompt, 60))
		}
	})
	return ids
}
