package cli

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
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
	home, err := filepath.Abs(c.home)
	if err != nil {
		return err
	}
	cfg, configPath, err := setup.ReadConfig(home, c.config)
	if err != nil {
		return err
	}
	held := host.SessionHost{Session: session, Idle: time.Duration(cfg.Processes.SessionIdle)}
	held.Home, held.Tenant, held.Config, held.Database = home, cfg.Tenant, configPath, c.databaseURL()
	if c.tenant != "" {
		held.Tenant = c.tenant
	}
	held.Open = func(ctx context.Context, earlier bool) (*host.Host, func() error, error) {
		a, err := app.Open(ctx, app.Options{
			Home: home, Config: c.config, Database: c.databaseURL(), Tenant: c.tenant, Scrubber: c.scrubber,
			Earlier: func(string, string) bool { return earlier },
		})
		if err != nil {
			return nil, nil, err
		}
		return a.Host, a.Close, nil
	}
	return held.Serve(ctx)
}
