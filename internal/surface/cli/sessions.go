package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) sessions() *cobra.Command {
	return group(spec{
		use:   "sessions",
		short: "Manage investigation sessions",
		long: `Manage investigation sessions.

A session holds the artifacts of an investigation: files that are registered once and
never change. Ids may be cut short as long as they are unique. MORTISE_SESSION names
the session of commands that have the flag --session.`,
	}, c.sessionsCreate(), c.sessionsList(), c.sessionsShow(), c.sessionsTimeline(), c.sessionsReport(), c.sessionsMove(true), c.sessionsMove(false), c.sessionsDelete())
}

func (c *command) sessionsCreate() *cobra.Command {
	var o host.NewSession
	return c.change(spec{
		anywhere: true,
		use:      "create",
		short:    "Start a session and print its id",
		example: `  export MORTISE_SESSION=$(mortise sessions create --name "case 12" --pillar log_analysis)
  mortise artifacts add auth.log`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&o.Name, "name", "", "what people call it")
			cmd.Flags().StringVar(&o.Pillar, "pillar", "", "the field it is in: "+strings.Join(host.Pillars, ", "))
			_ = cmd.RegisterFlagCompletionFunc("pillar", cobra.FixedCompletions(host.Pillars, cobra.ShellCompDirectiveNoFileComp))
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		s, err := q.Sessions().Create(ctx, o)
		if err == nil && o.Pillar != "" && !slices.Contains(host.Pillars, o.Pillar) {
			c.say("%s is none of the usual pillars: %s", o.Pillar, strings.Join(host.Pillars, ", "))
		}
		return done{value: s, said: s.ID}, err
	})
}

func (c *command) sessionsList() *cobra.Command {
	var last int
	return list(c, spec{
		use: "list", short: "List sessions, the newest first", example: "  mortise sessions list",
		anywhere: true, door: inStore, limit: &limit{"last", &last, 50, "how many sessions"},
	}, view.Sessions, func(ctx context.Context, q *ask) ([]host.Session, error) {
		all, err := q.Sessions().List(ctx)
		return all[:min(len(all), last)], err
	})
}

func (c *command) sessionsShow() *cobra.Command {
	return show(c, spec{use: "show ID", short: "Show a session with its artifacts", example: "  mortise sessions show sess_4f2a", complete: c.completeSessions, anywhere: true, door: inStore},
		func(ctx context.Context, q *ask) (s view.SessionShown, err error) {
			if s.Session, err = findSession(ctx, q.Host, q.args[0]); err == nil {
				s.Artifacts, err = q.Sessions().Artifacts(ctx, s.Session.ID)
			}
			return s, err
		}, view.Session)
}

// sessionsMove is `sessions close` or `sessions resume`.
func (c *command) sessionsMove(open bool) *cobra.Command {
	s := spec{anywhere: true, use: "close ID", short: "Close a session; it can still be read", example: "  mortise sessions close sess_4f2a", complete: c.completeSessions}
	if open {
		s.use, s.short, s.example = "resume ID", "Open a closed session again", "  mortise sessions resume sess_4f2a"
	}
	return c.change(s, func(ctx context.Context, q *ask) (done, error) {
		move := q.Sessions().Close
		if open {
			move = q.Sessions().Resume
		}
		s, err := inSession(ctx, q.Host, q.args[0], func(id string) (host.Session, error) { return move(ctx, id) })
		return done{value: s, said: fmt.Sprintf("session %s is %s", s.ID, s.State)}, err
	})
}

func (c *command) sessionsDelete() *cobra.Command {
	return c.change(spec{anywhere: true, use: "delete ID", short: "Delete a session with its artifacts; its entries in the ledger stay", example: "  mortise sessions delete sess_4f2a", complete: c.completeSessions},
		func(ctx context.Context, q *ask) (done, error) {
			s, err := inSession(ctx, q.Host, q.args[0], func(id string) (host.Session, error) { return q.Sessions().Delete(ctx, id) })
			return done{value: s, said: fmt.Sprintf("session %s is deleted, with %d artifacts", s.ID, s.Artifacts)}, err
		})
}

// keeping looks at what the host keeps. The administrator, who acts under no other
// name, reads the store alone and touches nothing; for others a host is opened, which
// asks policy and records what it refuses.
func (c *command) keeping(ctx context.Context, do func(k client.Host) error) error {
	if c.home == "" {
		return usage{errNoHome}
	}
	conf, _, err := setup.ReadConfig(c.home, c.config)
	if err != nil {
		return usage{err}
	}
	if c.tenant == "" && (c.as == "" || c.as == conf.Principal) {
		return c.reading(ctx, func(st host.Store) error {
			return do(client.Embedded(host.Reading(st, conf.Tenant), c.who(conf.Principal, conf.Principal)))
		})
	}
	return c.withHost(ctx, func(a *app.App) error { return do(c.asking(a).Host) })
}

// completeSessions offers the newest sessions.
func (c *command) completeSessions(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		c.completing(cmd, func(k client.Host) {
			all, _ := k.Sessions().List(cmd.Context())
			for _, s := range all[:min(len(all), offered)] {
				ids = append(ids, s.ID+"\t"+terminal.OneLine(s.State+" "+s.Name, 60))
			}
		})
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
