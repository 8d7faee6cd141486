package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/surface/upkeep"
)

// keep is the command that a host starts for a session, so that what its plugins keep in
// memory outlives a command line.
func (c *command) keep() *cobra.Command {
	return &cobra.Command{
		Use:    "keep SESSION",
		Short:  "Hold the plugin processes of one session, for the command lines that use it",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return c.keepSession(cmd.Context(), args[0]) },
	}
}

func (c *command) keepSession(ctx context.Context, session string) error {
	if c.home == "" {
		return usage{errNoHome}
	}
	return upkeep.Keep(ctx, app.Options{Tenant: c.tenant, Home: c.home, Config: c.config, Database: c.databaseURL(), Scrubber: c.scrubber}, session)
}
