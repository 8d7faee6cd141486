package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) agents() *cobra.Command {
	cmd := group(spec{
		use:   "agents",
		short: "Manage agents",
		long: `Manage agents.

An agent has a prompt, plugins of its own, a memory and conversations. Each use of a
tool is a call like any other, with the rights of the user in the conversation.
'mortise chat' talks to one at the terminal, 'mortise plugins enable NAME --agent ID'
gives it a plugin. These commands need the right to configure mortise.agents; each
change is an entry of the ledger.`,
	}, c.agentsCreate(), c.agentsList(), c.agentsShow(), c.agentsSet(),
		c.agentsChange("start", "Let an agent take messages of its channels, and the times of its schedules", "is running", client.Agents.Start),
		c.agentsChange("stop", "Let an agent take no more messages; a turn that was begun goes on", "is stopped", client.Agents.Stop),
		c.agentsChange("delete", "Take an agent away, with its memory, its schedules and what it was given; what was said with it stays", "is deleted", client.Agents.Delete),
		c.agentsMemory(), c.agentsRemember(), c.agentsForget(), c.agentsConversations(), c.agentsEnd(), c.agentsSchedule())
	cmd.Aliases = []string{"agent"}
	return cmd
}

// agentFlags are the flags of `mortise agents create` and `set`.
type agentFlags struct {
	cmd                *cobra.Command
	prompt, promptFile string
	tier, settings     string
}

func (f *agentFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.prompt, "prompt", "", "who it is, in the words of its own prompt; the usual one if empty")
	flags.StringVar(&f.promptFile, "prompt-file", "", "the same from a file; - for standard input")
	flags.StringVar(&f.tier, "tier", "", "of the models that it thinks with: light or heavy; the host's choice if empty")
	flags.StringVar(&f.settings, "settings", "", "its limits and channels: a file of JSON; - for standard input")
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions([]string{"light", "heavy"}, cobra.ShellCompDirectiveNoFileComp))
}

// agentChange is what the flags ask for, as far as they are given.
func (c *command) agentChange(f *agentFlags) (change host.AgentChange, err error) {
	if f.promptFile == "-" && f.settings == "-" {
		return change, usage{errors.New("--prompt-file - and --settings -: standard input has one of them")}
	}
	flags := f.cmd.Flags()
	if flags.Changed("prompt") && flags.Changed("prompt-file") {
		return change, onlyOne("--prompt", "--prompt-file")
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
		settings, err := host.ParseAgentSettings(raw)
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
	var change host.AgentChange
	return c.change(spec{
		anywhere: true,
		use:      "create ID",
		short:    "Create an agent, stopped and with the plugins of all agents",
		example: `  mortise agents create support --prompt "You help customers of a bakery."
  mortise plugins enable orders --agent support
  mortise chat support`,
		complete: cobra.NoFileCompletions,
		flags: func(cmd *cobra.Command) {
			f.add(cmd)
			cmd.Flags().StringVar(&brain, "brain", "", "an operation that decides in place of the host's own chat; not yet")
		},
		check: func([]string) (err error) {
			if brain != "" {
				return plugin.Errorf(plugin.CodeInvalidInput, "--brain %.80s: agents think with the host's own chat for now, and no operation can take its place; leave --brain out", brain)
			}
			change, err = c.agentChange(&f)
			return err
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		n := host.NewAgent{ID: q.args[0], Tier: f.tier}
		if change.Prompt != nil {
			n.Prompt = *change.Prompt
		}
		if change.Settings != nil {
			n.Settings = *change.Settings
		}
		made, err := q.Agents().Create(ctx, n)
		next := []string{fmt.Sprintf("'mortise plugins enable NAME --agent %s' gives it a plugin, 'mortise chat %s' talks to it", made.ID, made.ID)}
		if len(made.Settings.Channels) > 0 {
			next = append(next, fmt.Sprintf("'mortise agents start %s' lets it take messages of its channels", made.ID))
		}
		return done{made, fmt.Sprintf("agent %s is made", made.ID), next}, err
	})
}

func (c *command) agentsSet() *cobra.Command {
	var f agentFlags
	var change host.AgentChange
	return c.change(spec{
		anywhere: true,
		use:      "set ID",
		short:    "Change the prompt, tier or settings of an agent",
		example: `  mortise agents set support --prompt-file support.md
  mortise agents set support --settings support.json --tier heavy`,
		complete: c.completeAgents,
		flags:    f.add,
		check: func([]string) (err error) {
			if change, err = c.agentChange(&f); err == nil && change == (host.AgentChange{}) {
				err = usage{errors.New("nothing is to be another; say --prompt, --prompt-file, --tier or --settings")}
			}
			return err
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		made, err := q.Agents().Change(ctx, q.args[0], change)
		return done{value: made, said: fmt.Sprintf("agent %s is changed", made.ID)}, err
	})
}

// agentsChange is a command that changes one agent.
func (c *command) agentsChange(verb, short, what string, do func(client.Agents, context.Context, string) (host.Agent, error)) *cobra.Command {
	return c.change(spec{anywhere: true, use: verb + " ID", short: short, example: "  mortise agents " + verb + " support", complete: c.completeAgents},
		func(ctx context.Context, q *ask) (done, error) {
			changed, err := do(q.Agents(), ctx, q.args[0])
			return done{value: changed, said: fmt.Sprintf("agent %s %s", changed.ID, what)}, err
		})
}

func (c *command) agentsList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List agents", example: "  mortise agents list"}, view.Agents,
		func(ctx context.Context, q *ask) ([]host.Agent, error) { return q.Agents().List(ctx) })
}

func (c *command) agentsShow() *cobra.Command {
	return show(c, spec{
		anywhere: true,
		use:      "show ID",
		short:    "Show an agent: its plugins, channels and memory",
		example:  "  mortise agents show support",
		complete: c.completeAgents,
	}, func(ctx context.Context, q *ask) (host.AgentShown, error) { return q.Agents().Show(ctx, q.args[0]) }, view.Agent)
}

func (c *command) agentsSchedule() *cobra.Command {
	var cron, every, zone, prompt string
	spec := spec{
		anywhere: true,
		use:      "schedule ID",
		short:    "Run an agent on a schedule and print the id of its feed",
		long: `Have an agent asked at set times, in a conversation of its own each, and print the id
of the feed that does it. The turns have the rights of the feed's owner: you.
'mortise serve' makes them while the agent is started; 'mortise feeds' shows, pauses
and deletes it.`,
		example:  `  mortise agents schedule support --cron "0 7 * * 1-5" --zone Europe/Berlin --prompt "Sum up the open orders."`,
		complete: c.completeAgents,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringVar(&cron, "cron", "", "five fields: minute, hour, day, month, weekday")
			flags.StringVar(&every, "every", "", "the interval: 15m, 1h30m")
			flags.StringVar(&zone, "zone", "", "the time zone of --cron, such as Europe/Berlin; UTC if empty")
			flags.StringVar(&prompt, "prompt", "", "what it is asked")
		},
		check: func([]string) error {
			switch {
			case (cron == "") == (every == ""):
				return usage{errors.New("at which times? --cron or --every, one of them")}
			case every != "" && zone != "":
				return usage{errors.New("--zone is for --cron: an interval is the same everywhere")}
			case prompt == "":
				return usage{errors.New("what is it to be asked? --prompt says")}
			}
			return nil
		},
	}
	return c.change(spec, func(ctx context.Context, q *ask) (done, error) {
		times := "cron " + cron
		if every != "" {
			times = "every " + every
		}
		feed, err := q.Agents().Schedule(ctx, q.args[0], prompt, times, zone)
		if err != nil {
			return done{}, err
		}
		return done{feed, feed.ID, []string{view.Scheduled(q.args[0], feed)}}, nil
	})
}

// completeAgents offers the agents.
func (c *command) completeAgents(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		ids = c.agentIDs(cmd)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (c *command) agentIDs(cmd *cobra.Command) []string { return c.offers(cmd, client.Offers.Agents) }
