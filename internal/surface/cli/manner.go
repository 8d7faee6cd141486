package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/client"
)

// asking is an ask of a host that is open in this process.
func (c *command) asking(a *app.App) *ask {
	who := c.who(host.PrincipalName(a.Principal), a.Config.Principal)
	who.Home = a.Home
	return &ask{Host: client.Holding(a.As(a.Principal), who, c.options(), a.Sandbox.Tell), app: a}
}

// who is who acts on a host that is in this process.
func (c *command) who(name, operator string) client.Who {
	return client.Who{Manner: client.InProcess, Principal: name, Owner: name == operator, Home: c.home, Version: host.Version, Operator: operator}
}

// options say which host is meant.
func (c *command) options() client.Options {
	server := c.server
	if c.embedded || c.tenant != "" { // the API is of one tenant, that of who asks
		server = client.Here
	}
	return client.Options{
		Server: server, Home: c.home, Config: c.config, As: c.as, Tenant: c.tenant, Token: os.Getenv("MORTISE_TOKEN"), Say: c.say, Database: c.databaseURL(),
		Chosen: c.homeGiven || c.config != "" || c.databaseURL() != "" || os.Getenv("MORTISE_HOME") != "",
	}
}

// reach does something with the host that serves the data directory, or that is at a URL,
// and else with one that door opens here.
func (c *command) reach(ctx context.Context, here door, do func(*ask) error) error {
	if c.embedded && c.server != "" && c.server != client.Here {
		return onlyOne("--embedded", "--server")
	}
	if c.tenant != "" && c.server != "" && c.server != client.Here {
		return onlyOne("--tenant", "--server")
	}
	h, err := client.Reach(ctx, c.options())
	if errors.As(err, new(client.Misuse)) {
		return usage{err}
	}
	if err != nil {
		return err
	}
	if h == nil {
		return here(c, ctx, do)
	}
	if c.debug {
		c.say("mortise: reached by %s as %s", h.Who().Manner, h.Who().Principal)
	}
	return do(&ask{Host: h})
}

// isHere refuses what is of the data directory itself where the host that is meant is
// elsewhere.
func (c *command) isHere(what string) error {
	o := c.options()
	t, err := o.Find()
	if err != nil {
		return usage{err}
	}
	if t.Remote() {
		return usage{fmt.Errorf("%s is of the data directory of a host, and the host that is meant is at %s: run it where that host runs, or with --embedded on the data directory %s here", what, t.Context.URL, c.home)}
	}
	return nil
}

// mannerFlags are those that say which host is meant, and how it is reached.
func (c *command) mannerFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&c.server, "server", os.Getenv("MORTISE_SERVER"), "the host to ask: its URL, or the name of a context (or MORTISE_SERVER)")
	flags.BoolVar(&c.embedded, "embedded", false, "open the data directory in this process, whatever serves it (or MORTISE_SERVER=embedded)")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		c.homeGiven = cmd.Flags().Changed("home")
		for at := cmd; at != nil; at = at.Parent() {
			if isLocal[at.CommandPath()] {
				return c.isHere("'" + cmd.CommandPath() + "'")
			}
		}
		return nil
	}
}

// isLocal are the commands that are of a data directory, with those below them. The others
// that open one find out when they do.
var isLocal = map[string]bool{
	"mortise serve": true, "mortise config": true, "mortise backup": true, "mortise restore": true,
	"mortise check": true, "mortise test": true, "mortise ledger verify": true, "mortise mcp sign-in": true,
}

// configPath is the file that configures the host, as far as it is known here.
func (c *command) configPath(q *ask) string {
	if q.app != nil {
		return q.app.ConfigPath
	}
	if path, _, _, err := c.place().FindConfig(); err == nil && q.Who().Server == "" {
		return path
	}
	return "mortise.yaml"
}

// publicBase is the address of the host for browsers.
func (c *command) publicBase(q *ask) (string, error) {
	if q.Who().Server != "" {
		return q.Who().Server, nil
	}
	conf, _, err := setup.ReadConfig(c.home, c.config)
	return conf.Server.Base(""), err
}

// mcp serves operations as tools, to a client that starts the program.
func (c *command) mcp() *cobra.Command {
	cmd := client.MCPCommand(c.in, c.out, c.errs, func(ctx context.Context, do func(client.Host) error) error {
		return c.reach(ctx, inHost, func(q *ask) error { return do(q.Host) })
	})
	cmd.AddCommand(c.mcpMount(), c.mcpImport(), c.mcpSignIn(), c.mcpSignOut())
	return cmd
}

// hook answers programs that ask before they use tools of their own.
func (c *command) hook() *cobra.Command {
	return group(spec{use: "hook", short: "Decide about tools that other programs run"},
		client.HookCommand(c.in, c.out, c.options, func(ctx context.Context, do func(client.Host) error) error {
			return c.reach(ctx, inHost, func(q *ask) error { return do(q.Host) })
		}))
}
