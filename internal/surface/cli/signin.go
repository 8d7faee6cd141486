package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) mcpSignIn() *cobra.Command {
	var s client.SigningIn
	var quiet bool
	return c.change(spec{
		anywhere: true,
		use:      "sign-in NAME",
		short:    "Sign in to a mounted server with a browser",
		long: `Sign in to the server of a plugin that is mounted with oauth, in a browser on this
machine, and keep the token for the host: every call of the plugin uses it, and policy
says who may call. A plugin that waits for this, in mounts/NAME of the data directory, is registered.

The server names the authorization server that signs you in. You are asked whether it is
the right one before anything is sent there; --issuer names it in a script. A later
sign-in at another one is refused until 'mortise mcp sign-out NAME'.`,
		example: `  mortise mcp mount wiki --url https://wiki.example.com/mcp --oauth
  mortise mcp sign-in wiki
  mortise mcp sign-in wiki --issuer https://login.example.com --no-browser`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&s.Issuer, "issuer", "", "the authorization server; it is asked about otherwise")
			cmd.Flags().StringSliceVar(&s.Scopes, "scopes", nil, "what to ask for, in place of the manifest's and the server's; several with spaces or commas")
			cmd.Flags().StringVar(&s.Dir, "manifest", "", "the directory of the manifest, where it is not mounts/NAME")
			cmd.Flags().BoolVar(&quiet, "no-browser", false, "open no browser")
		},
		check: func(args []string) error {
			if client.PluginName(args[0]) != args[0] {
				return usage{fmt.Errorf("%q is no name of a plugin: letters, digits, dots, hyphens and underscores, beginning with a letter", args[0])}
			}
			s.Plugin, s.Home, s.Config, s.Scopes = args[0], c.home, c.config, words(s.Scopes)
			return nil
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		s.Confirm = c.confirmIssuer(s.Plugin)
		s.Hide = func(values ...string) (err error) {
			for _, value := range values {
				err = errors.Join(err, c.scrubber.Learn(value))
			}
			return err
		}
		s.Open = func(address string) {
			c.say("open this address in a browser on this machine, within 5 minutes:")
			fmt.Fprintln(c.errs, terminal.Safe(address))
			if !quiet && c.onTerminal() {
				browse(address)
			}
		}
		got, err := s.Run(ctx, q.Host)
		return done{value: got, said: got.String()}, err
	})
}

// confirmIssuer asks a person whether an authorization server is the one that is to sign them in.
func (c *command) confirmIssuer(name string) func(context.Context, string) error {
	return func(ctx context.Context, issuer string) error {
		if c.json || !terminal.Is(c.in) {
			return plugin.Errorf(plugin.CodeInvalidInput, "the server of %s names the authorization server %.500s: if that is right, say --issuer %.500s", name, terminal.Safe(issuer), terminal.Safe(issuer))
		}
		answers := bufio.NewReader(io.LimitReader(c.in, 1<<10))
		yes, err := terminal.Confirm(ctx, answers, c.errs, fmt.Sprintf("The server of %s lets %.500s sign you in. Is that right?", name, terminal.Safe(issuer)))
		if err == nil && !yes {
			err = plugin.Errorf(plugin.CodeCancelled, "%s: no one was signed in", name)
		}
		return err
	}
}

func (c *command) mcpSignOut() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "sign-out NAME",
		short:    "Remove the token for a mounted server",
		long: `Remove what 'mortise mcp sign-in' kept for the server of a plugin. Its calls are refused
from then on. The token itself is not taken back at the authorization server.`,
		example: "  mortise mcp sign-out wiki",
	}, func(ctx context.Context, q *ask) (done, error) {
		name := q.args[0]
		return done{value: map[string]string{"plugin": name, "state": "signed out"}, said: name + " is signed out"}, client.SignOut(ctx, q.Host, name)
	})
}
