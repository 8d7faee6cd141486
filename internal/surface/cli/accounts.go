package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) connect() *cobra.Command {
	var scopes []string
	var quiet bool
	cmd := c.change(spec{
		anywhere: true,
		use:      "connect PROVIDER",
		short:    "Connect an account of yours, or add this host to an editor or coding agent",
		long: `Connect your account with a provider, for plugins to act with in your calls; or, by
the name of a program that is listed below, this host with that program.

PROVIDER is one of auth: providers in mortise.yaml. A page of the provider's opens
in a browser, or is opened by hand with the address that is shown; it comes back to
this machine, for which it is waited for up to 5 minutes. What was agreed to before
is asked for again beside --scopes. Tokens are kept encrypted, and no command shows
them.`,
		example: `  mortise connect google --scopes https://www.googleapis.com/auth/gmail.readonly`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what plugins are to do there, in the provider's words; several with spaces or commas")
			cmd.Flags().BoolVar(&quiet, "no-browser", false, "open no browser")
		},
	}, func(ctx context.Context, q *ask) (_ done, err error) {
		waiting, err := q.Accounts().Begin(ctx, q.args[0], words(scopes))
		if err != nil {
			return done{}, err
		}
		defer func() { err = errors.Join(err, waiting.Close()) }()
		c.say("open this address in a browser on this machine:")
		if _, err := fmt.Fprintln(c.errs, waiting.URL); err != nil {
			return done{}, err
		}
		if !quiet && c.onTerminal() {
			browse(waiting.URL)
		}
		got, err := waiting.Wait(ctx)
		return done{value: got, said: fmt.Sprintf("%s is connected as %s with %s", got.Provider, view.AccountName(&got), strings.Join(got.Scopes, " "))}, err
	})
	cmd.AddCommand(client.ConnectCommands(c.out, c.options)...)
	return cmd
}

// words takes apart what is written with spaces.
func words(flags []string) []string { return strings.Fields(strings.Join(flags, " ")) }

// browse opens an address in a browser where there is one. The address is shown
// too, so it makes no difference whether that works.
func browse(address string) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	cmd := exec.Command(program, address)
	if cmd.Start() == nil {
		cmd.Process.Release()
	}
}

func (c *command) accounts() *cobra.Command {
	return group(spec{use: "accounts", short: "List, test and remove connected accounts"},
		c.accountsList(), c.accountsTest(), c.accountsRemove())
}

func (c *command) accountsList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List the providers and your accounts with them, without tokens", example: "  mortise accounts list"}, view.Accounts,
		func(ctx context.Context, q *ask) ([]host.AccountState, error) {
			all, err := q.Accounts().List(ctx)
			if err == nil && len(all) == 0 && !c.json {
				c.say("no provider is configured; add one under auth: providers in mortise.yaml")
			}
			return all, err
		})
}

func (c *command) accountsTest() *cobra.Command {
	mode, subject := host.AccountOfUser, ""
	var scopes []string
	return c.change(spec{
		anywhere: true,
		use:      "test PROVIDER",
		short:    "Test whether an account can get a token",
		long: `Test whether an account can get a token.

Your own account's is renewed; with --mode service_account or domain_delegate one
of the host's service account is asked for. The token is not shown.`,
		example: "  mortise accounts test google --mode service_account",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&mode, "mode", mode, "as whom: user, service_account or domain_delegate")
			cmd.Flags().StringVar(&subject, "subject", "", "for whom a delegate stands in; yourself without it")
			cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what the token is to be for")
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		defer c.errs.Begin("asking " + q.args[0]).End()
		got, err := q.Accounts().Test(ctx, q.args[0], mode, subject, words(scopes))
		return done{value: got, said: view.Token(got.Provider, got.Mode, got.Target)}, err
	})
}

func (c *command) accountsRemove() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "remove PROVIDER",
		short:    "Disconnect an account and revoke its access at the provider",
		example:  "  mortise accounts remove google",
	}, func(ctx context.Context, q *ask) (done, error) {
		gone, err := q.Accounts().Remove(ctx, q.args[0])
		if err == nil && !gone.Revoked && !c.json {
			c.say("its tokens were not taken back: %s", gone.Problem)
		}
		return done{value: gone, said: fmt.Sprintf("the account %s with %s is gone", view.AccountName(&gone.Account), q.args[0])}, err
	})
}
