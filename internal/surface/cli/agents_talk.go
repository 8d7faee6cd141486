package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) agentsMemory() *cobra.Command {
	var search string
	var last int
	cmd := &cobra.Command{
		Use:               "memory ID",
		Short:             "Show what an agent remembers, the newest first",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 1 {
				return usage{errors.New("--last is at least 1")}
			}
			return c.withHost(cmd.Context(), func(a *app.App) error {
				all, err := a.As(c.principal(a)).Agents().Memories(cmd.Context(), args[0], search, min(last, agent.MaxMemories))
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"memories": all})
				}
				t := terminal.NewTable(c.out, "KEY", "CHANGED", "TEXT")
				t.Fit = c.width()
				for _, m := range all {
					t.Row(m.Key, terminal.Clock(m.UpdatedAt), terminal.OneLine(m.Content, 1000))
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&search, "search", "", "only what has one of these words; what has most of them first")
	cmd.Flags().IntVarP(&last, "last", "n", 50, "how many")
	return c.withJSON(cmd)
}

func (c *command) agentsRemember() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:               "remember ID KEY TEXT",
		Short:             "Have an agent remember something, in place of what it had under that key",
		Example:           `  mortise agents remember support hours "The shop is open from 7 to 18."`,
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: c.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				if err := a.As(c.principal(a)).Agents().Remember(cmd.Context(), args[0], args[1], args[2]); err != nil {
					return err
				}
				return c.memoryChanged(args[0], args[1], "remembers")
			})
		},
	})
}

func (c *command) agentsForget() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:               "forget ID KEY",
		Short:             "Take something from what an agent remembers",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: c.completeMemories,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				if err := a.As(c.principal(a)).Agents().Forget(cmd.Context(), args[0], args[1]); err != nil {
					return err
				}
				return c.memoryChanged(args[0], args[1], "has forgotten")
			})
		},
	})
}

func (c *command) memoryChanged(id, key, what string) error {
	if c.json {
		return c.print(map[string]string{"agent": id, "key": key})
	}
	_, err := fmt.Fprintf(c.out, "%s %s %s\n", terminal.Safe(id), what, terminal.OneLine(key, 300))
	return err
}

// completeMemories offers the agents, and then what one remembers.
func (c *command) completeMemories(cmd *cobra.Command, args []string, typed string) (keys []string, _ cobra.ShellCompDirective) {
	if len(args) != 1 {
		return c.completeAgents(cmd, args, typed)
	}
	c.completingAll(cmd, func(st store.Reader, tenant string) {
		rows, _ := st.Memories(cmd.Context(), tenant, args[0], offered)
		for _, row := range rows {
			keys = append(keys, row.Key+"\t"+terminal.OneLine(row.Content, 60))
		}
	})
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (c *command) agentsConversations() *cobra.Command {
	var last int
	cmd := &cobra.Command{
		Use:               "conversations ID [SESSION]",
		Short:             "List the conversations with an agent, the newest first; or show the messages of one",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 1 {
				return usage{errors.New("--last is at least 1")}
			}
			return c.withHost(cmd.Context(), func(a *app.App) error {
				roster := a.As(c.principal(a)).Agents()
				if len(args) == 2 {
					one, said, err := roster.Messages(cmd.Context(), args[0], args[1], last)
					if err != nil {
						return err
					}
					return c.showConversation(one, said)
				}
				all, err := roster.Conversations(cmd.Context(), args[0], last)
				if err != nil {
					return err
				}
				return c.listConversations(all)
			})
		},
	}
	cmd.Flags().IntVarP(&last, "last", "n", 50, "how many conversations, or messages")
	return c.withJSON(cmd)
}

func (c *command) agentsEnd() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "end ID [SESSION]",
		Short: "End a conversation with an agent: the one that is named, else your own newest at the terminal",
		Long: `End a conversation with an agent: the one that is named, else your own newest at the
terminal. A turn that goes on is waited for. The agent's plugins hear
session.closed@v1 with the reason user: in the host that serves, or here where none
does. What is said later begins a new conversation.`,
		Example: `  mortise agents end support
  mortise agents end support sess_2f6c`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			session := ""
			if len(args) == 2 {
				session = args[1]
			}
			return c.withHost(cmd.Context(), func(a *app.App) error {
				one, err := a.As(c.principal(a)).Agents().End(cmd.Context(), args[0], session)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(one)
				}
				_, err = fmt.Fprintf(c.out, "the conversation %s has ended\n", one.Session)
				return err
			})
		},
	})
}

func (c *command) listConversations(all []host.Conversation) error {
	if c.json {
		return c.print(map[string]any{"conversations": all})
	}
	t := terminal.NewTable(c.out, "SESSION", "CREATED", "CHANGED", "STATE", "TURNS", "CHANNEL", "WITH")
	t.Fit = c.width()
	for _, one := range all {
		t.Row(one.Session, terminal.Clock(one.CreatedAt), terminal.Clock(one.UpdatedAt), stateOfTalk(one), strconv.FormatInt(one.Turns, 10), terminal.OneLine(place(one), 200), terminal.Dash(terminal.OneLine(one.Peer, 200)))
	}
	return t.Flush()
}

func stateOfTalk(one host.Conversation) string {
	switch {
	case one.Waiting:
		return "waiting"
	case one.Open:
		return "open"
	}
	return "ended"
}

func (c *command) showConversation(one host.Conversation, said []host.Spoken) error {
	if c.json {
		return c.print(map[string]any{"conversation": one, "messages": said})
	}
	t := terminal.Details(c.out)
	t.Row("session", one.Session)
	t.Row("with", terminal.Dash(terminal.OneLine(one.Peer, 200))+" by "+terminal.OneLine(place(one), 200))
	t.Row("state", stateOfTalk(one))
	t.Row("turns", strconv.FormatInt(one.Turns, 10))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range said {
		who := m.Role
		if m.Sender != "" {
			who += " " + terminal.OneLine(m.Sender, 100)
		}
		if len(m.Labels) > 0 {
			who += " (" + strings.Join(m.Labels, ", ") + ")"
		}
		fmt.Fprintf(c.out, "\n%d  %s  %s\n", m.N, terminal.Clock(m.At), terminal.Safe(who))
		if m.Text != "" {
			fmt.Fprintf(c.out, "  %s\n", strings.ReplaceAll(terminal.Safe(m.Text), "\n", "\n  ")) // no line of it may pass for another message
		}
		for _, u := range m.Uses {
			fmt.Fprintf(c.out, "  uses %s %s\n", terminal.OneLine(u.Name, 100), terminal.OneLine(string(u.Input), 300))
		}
		for _, r := range m.Results {
			what := "answered"
			if r.Failed {
				what = "failed:"
			}
			if _, err := fmt.Fprintf(c.out, "  %s %s %s\n", terminal.OneLine(r.Name, 100), what, terminal.OneLine(r.Text, 300)); err != nil {
				return err
			}
		}
	}
	return nil
}

// completeConversations offers the agents, and then the conversations of one.
func (c *command) completeConversations(cmd *cobra.Command, args []string, typed string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) != 1 {
		return c.completeAgents(cmd, args, typed)
	}
	c.completingAll(cmd, func(st store.Reader, tenant string) {
		rows, _ := st.Conversations(cmd.Context(), store.ConversationFilter{Tenant: tenant, Agent: args[0], Limit: offered})
		for _, row := range rows {
			ids = append(ids, row.SessionID+"\t"+terminal.OneLine(row.Channel+" "+row.Peer, 60))
		}
	})
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// place is where a conversation takes place.
func place(one host.Conversation) string {
	if one.Room == "" {
		return one.Channel
	}
	return one.Channel + " " + one.Room
}
