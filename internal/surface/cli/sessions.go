package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/relay"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) sessions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "Begin investigations, and end them",
		Long: `Begin investigations, and end them.

A session holds the artifacts of an investigation: files that are registered once and
never change. Ids may be cut short as long as they are unique. MORTISE_SESSION names
the session of commands that have the flag --session.`,
	}
	cmd.AddCommand(c.sessionsCreate(), c.sessionsList(), c.sessionsShow(), c.sessionsMove(true), c.sessionsMove(false), c.sessionsDelete())
	return cmd
}

func (c *command) sessionsCreate() *cobra.Command {
	var o session.Open
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Begin a session, and print its id",
		Example: `  export MORTISE_SESSION=$(mortise sessions create --name "case 12" --pillar log_analysis)
  mortise artifacts add auth.log`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				s, err := a.As(a.Principal).Sessions().Create(cmd.Context(), o)
				if err != nil {
					return err
				}
				if o.Pillar != "" && !slices.Contains(session.Pillars, o.Pillar) {
					c.say("%s is none of the usual pillars: %s", o.Pillar, strings.Join(session.Pillars, ", "))
				}
				if c.json {
					return c.print(s)
				}
				_, err = fmt.Fprintln(c.out, s.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "what people call it")
	cmd.Flags().StringVar(&o.Pillar, "pillar", "", "the field it is in: "+strings.Join(session.Pillars, ", "))
	_ = cmd.RegisterFlagCompletionFunc("pillar", cobra.FixedCompletions(session.Pillars, cobra.ShellCompDirectiveNoFileComp))
	return c.withJSON(cmd)
}

func (c *command) sessionsList() *cobra.Command {
	var last int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 1 {
				return usage{errors.New("--last is at least 1")}
			}
			return c.keeping(cmd.Context(), func(k host.API) error {
				all, err := k.Sessions().List(cmd.Context())
				if err != nil {
					return err
				}
				all = all[:min(len(all), last)]
				if c.json {
					return c.print(map[string]any{"sessions": all})
				}
				t := terminal.NewTable(c.out, "SESSION", "CREATED", "STATE", "PILLAR", "ARTIFACTS", "NAME")
				t.Fit = c.width()
				for _, s := range all {
					t.Row(s.ID, terminal.Clock(s.CreatedAt), s.State, terminal.Dash(s.Pillar), strconv.Itoa(s.Artifacts), terminal.Dash(s.Name))
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().IntVarP(&last, "last", "n", 50, "how many sessions")
	return c.withJSON(cmd)
}

func (c *command) sessionsShow() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:               "show ID",
		Short:             "Show a session with its artifacts",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.keeping(cmd.Context(), func(k host.API) error {
				got, err := k.Sessions().Get(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				artifacts, err := k.Sessions().Artifacts(cmd.Context(), got.ID)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"session": got, "artifacts": artifacts})
				}
				return c.showSession(got, artifacts)
			})
		},
	})
}

func (c *command) showSession(s session.Session, artifacts []session.Artifact) error {
	t := terminal.Details(c.out)
	t.Row("session", s.ID)
	if s.Name != "" {
		t.Row("name", s.Name)
	}
	t.Row("state", s.State)
	t.Row("pillar", terminal.Dash(s.Pillar))
	if len(s.Labels) > 0 {
		t.Row("labels", strings.Join(s.Labels, ", "))
	}
	t.Row("created", terminal.Clock(s.CreatedAt))
	t.Row("changed", terminal.Clock(s.UpdatedAt))
	if err := t.Flush(); err != nil || len(artifacts) == 0 {
		return err
	}
	fmt.Fprintln(c.out)
	return c.listArtifacts(artifacts)
}

// sessionsMove is `sessions close` or `sessions resume`.
func (c *command) sessionsMove(open bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "close ID",
		Short: "Let nothing more be added to a session, and end the conversation that it is; it can still be read",
	}
	if open {
		cmd.Use, cmd.Short = "resume ID", "Open a closed session again"
	}
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = c.completeSessions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withHost(cmd.Context(), func(a *app.App) error {
			change := a.As(a.Principal).Sessions().Close
			if open {
				change = a.As(a.Principal).Sessions().Resume
			}
			s, err := change(cmd.Context(), args[0])
			if err == nil && !open {
				err = relay.End(cmd.Context(), a.Home, a.Config.Tenant, s.ID)
			}
			if err != nil {
				return err
			}
			if c.json {
				return c.print(s)
			}
			_, err = fmt.Fprintf(c.out, "session %s is %s\n", s.ID, s.State)
			return err
		})
	}
	return c.withJSON(cmd)
}

func (c *command) sessionsDelete() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:               "delete ID",
		Short:             "Delete a session with its artifacts; its entries in the ledger stay",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				s, err := a.As(a.Principal).Sessions().Delete(cmd.Context(), args[0], func(s session.Session) error {
					return relay.Forget(cmd.Context(), a.Home, a.Config.Tenant, s.ID)
				})
				if err != nil {
					return err
				}
				if c.json {
					return c.print(s)
				}
				_, err = fmt.Fprintf(c.out, "session %s is deleted, with %d artifacts\n", s.ID, s.Artifacts)
				return err
			})
		},
	})
}

// keeping looks at what the host keeps. The administrator, who acts under no other
// name, reads the store alone and touches nothing; for others a host is opened, which
// asks policy and records what it refuses.
func (c *command) keeping(ctx context.Context, do func(k host.API) error) error {
	if c.home == "" {
		return usage{errNoHome}
	}
	conf, _, err := app.ReadConfig(c.home, c.config)
	if err != nil {
		return usage{err}
	}
	if c.as == "" || c.as == conf.Principal {
		return c.reading(ctx, func(st store.Store) error { return do(host.Reading(st, conf.Tenant)) })
	}
	return c.withHost(ctx, func(a *app.App) error { return do(a.As(a.Principal)) })
}

// sessionFlag adds the flag that says which session is meant.
func (c *command) sessionFlag(cmd *cobra.Command, session *string) {
	cmd.Flags().StringVar(session, "session", "", "the session's id (or MORTISE_SESSION)")
	_ = cmd.RegisterFlagCompletionFunc("session", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return c.completeSessions(cmd, nil, typed)
	})
}

// whichSession returns the session that is meant.
func whichSession(flag string) (string, error) {
	if id := cmp.Or(flag, os.Getenv("MORTISE_SESSION")); id != "" {
		return id, nil
	}
	return "", usage{errors.New("which session? --session or MORTISE_SESSION says; 'mortise sessions create' begins one")}
}

// completeSessions offers the newest sessions.
func (c *command) completeSessions(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		c.completing(cmd, func(k host.API) {
			all, _ := k.Sessions().List(cmd.Context())
			for _, s := range all[:min(len(all), offered)] {
				ids = append(ids, s.ID+"\t"+terminal.OneLine(s.State+" "+s.Name, 60))
			}
		})
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
