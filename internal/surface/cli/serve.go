package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/server"
)

func (c *command) serve() *cobra.Command {
	var address string
	var insecure, background bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: execute queued work and recover from failed nodes",
		Long: `Run the server: it executes queued and approved calls, continues plans, answers messages
to agents, sends events to webhooks, runs feeds and scheduled backups, and recovers the
calls of nodes that failed. Any number of nodes, each with a data directory of its own,
share the work of one PostgreSQL database.

With --listen, or server.listen in mortise.yaml, it also answers the API under /api/v1/,
for clients with a token of 'mortise tokens create', and takes deliveries of the channels
of agents, at POST /api/agents/AGENT/channels/NAMESPACE/webhook. An address that other
machines can reach needs a certificate, server.tls_cert and server.tls_key.

Ctrl-C, or SIGTERM, begins nothing more and waits for what was begun, for as long as
drain in mortise.yaml says. A second one exits at once; the next 'mortise serve'
recovers what it interrupted. SIGHUP, or 'mortise serve reload', reads mortise.yaml again.`,
		Example: `  mortise serve
  mortise serve --listen 127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if background {
				return c.stayBehind(cmd.Context())
			}
			where := &address
			if !cmd.Flags().Changed("listen") {
				where = nil
			}
			return c.stay(cmd.Context(), where, insecure)
		},
	}
	cmd.AddCommand(c.command(spec{
		use: "reload", short: "Reload the configuration of the running server", example: "  mortise serve reload", door: nowhere,
		long: `Have the host that serves this data directory read its configuration again, as SIGHUP does.

Principals, groups, roles, policies, rates, sign-ins, models, limits of one call and the
level of the log are in force at once. What is not is named, and needs a restart. A
configuration that cannot be used changes nothing.`,
	}, c.reload))
	cmd.Flags().StringVar(&address, "listen", "", "answer the API and take deliveries of channels on this address, such as 127.0.0.1:8080 (port 0: any that is free)")
	cmd.Flags().BoolVar(&insecure, "insecure-listen", false, "listen without a certificate also where other machines can reach it")
	cmd.Flags().BoolVar(&background, "background", false, "hold sessions for the command lines that use them, and end when none does")
	_ = cmd.Flags().MarkHidden("background")
	return cmd
}

// stayBehind is the host that a command line starts for a session, so that what its plugins
// keep in memory outlives the command.
func (c *command) stayBehind(ctx context.Context) (err error) {
	identity, err := c.place().Identity()
	if err != nil {
		return err
	}
	a, release, err := server.Open(ctx, app.Options{Home: c.home, Config: c.config, Database: c.databaseURL(), Standby: true, Scrubber: c.scrubber, Notice: c.notice})
	if err != nil {
		return err
	}
	defer release()
	defer closing(a, &err)
	return server.RunBackground(ctx, a, identity, func() { _, _ = io.WriteString(c.out, client.Ready) })
}

// reload has the host that serves read its configuration again.
func (c *command) reload(ctx context.Context, _ *ask) error {
	if c.home == "" {
		return usage{errNoHome}
	}
	done, err := server.Reload(ctx, c.home)
	switch {
	case err != nil:
		return err
	case c.json:
		return c.print(done)
	case len(done.Changed)+len(done.Restart) == 0:
		_, err = fmt.Fprintln(c.out, "nothing changed")
	}
	for _, keys := range []struct {
		what string
		all  []string
	}{{"in force now", done.Changed}, {"needs a restart", done.Restart}} {
		if len(keys.all) > 0 {
			_, err = fmt.Fprintf(c.out, "%s: %s\n", keys.what, strings.Join(keys.all, ", "))
		}
	}
	return err
}

func (c *command) stay(ctx context.Context, address *string, insecure bool) (err error) {
	if c.home == "" {
		return usage{errNoHome}
	}
	if err := c.ofSite(); err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Reset(syscall.SIGHUP) // which ends every other command
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	if err := client.EndBackground(ctx, c.options()); err != nil {
		return err
	}
	a, release, err := server.Open(ctx, app.Options{Home: c.home, Config: c.config, Database: c.databaseURL(), Standby: true, Scrubber: c.scrubber, Notice: c.notice})
	if err != nil {
		return err
	}
	defer release()
	defer closing(a, &err)
	l, err := server.ListenFor(ctx, a, address, insecure)
	if err != nil {
		return err
	}
	if err := c.reached(ctx, a, l); err != nil {
		return err
	}
	first, link, err := server.FirstRun(ctx, a, l)
	if err != nil {
		return err
	}
	if link != "" {
		c.say("no users yet; within 30 minutes, once and on this machine, this signs you in as the owner: %s", link)
	}
	database := a.Config.Database.String()
	if database == "" {
		database = "SQLite"
	}
	c.say("serving %s, database %s, %d workers; Ctrl-C stops", a.Home, database, a.Config.Workers)
	return server.Run(ctx, a, l, first, hangups)
}

// reached prints where the host can be reached, or that no listener serves the
// channels of its agents.
func (c *command) reached(ctx context.Context, a *app.App, l net.Listener) error {
	if l != nil {
		scheme := "http"
		if a.Config.Server.Encrypted() {
			scheme = "https"
		}
		c.say("listening on %s://%s", scheme, l.Addr())
		return nil
	}
	agents, err := a.Reached(ctx)
	if len(agents) > 0 {
		c.say("nothing listens for the channels of %s; --listen 127.0.0.1:8080 does", strings.Join(agents, ", "))
	}
	return err
}
