package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
)

func (c *command) serve() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Stay, and do what is waiting: queued calls, plans, what dead nodes left",
		Long: `Stay, and do what is waiting: calls that were queued or approved, plans that can go
on, calls that nodes left behind when they died. Any number of nodes, each with a data
directory of its own, share the work of one PostgreSQL database.

Ctrl-C, or SIGTERM, begins nothing more and waits for what was begun, for as long as
drain in mortise.yaml says. A second one leaves at once; what was cut off then is found
by whoever serves next.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.stay(cmd.Context()) },
	}
}

func (c *command) stay(ctx context.Context) (err error) {
	if c.home == "" {
		return usage{errNoHome}
	}
	release, err := app.Exclusive(c.home)
	if err != nil {
		return err
	}
	defer release()
	a, err := app.Open(ctx, app.Options{Home: c.home, Config: c.config, Database: c.databaseURL(), Standby: true, Scrubber: c.scrubber})
	if err != nil {
		return err
	}
	defer closing(a, &err)
	database := a.Config.Database.String()
	if database == "" {
		database = "SQLite"
	}
	c.say("serving %s, database %s, %d workers; Ctrl-C stops", a.Home, database, a.Config.Workers)
	return a.Work(ctx)
}
