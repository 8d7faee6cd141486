package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) connect() *cobra.Command {
	var scopes []string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "connect PROVIDER",
		Short: "Connect your account with a provider, for plugins to act with in your calls",
		Long: `Connect your account with a provider, for plugins to act with in your calls.

PROVIDER is one of auth: providers in mortise.yaml. A page of the provider's opens
in a browser, or is opened by hand with the address that is shown; it comes back to
this machine, for which it is waited for up to 5 minutes. What was agreed to before
is asked for again beside --scopes. Tokens are kept encrypted, and no command shows
them.`,
		Example: `  mortise connect google --scopes https://www.googleapis.com/auth/gmail.readonly`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withAccounts(cmd, func(s host.Accounts) (err error) {
				waiting, err := s.Begin(cmd.Context(), args[0], words(scopes))
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, waiting.Close()) }()
				c.say("open this address in a browser on this machine:")
				if _, err := fmt.Fprintln(c.errs, waiting.URL); err != nil {
					return err
				}
				if !quiet && terminal.Is(c.out) {
					browse(waiting.URL)
				}
				got, err := waiting.Wait(cmd.Context())
				if err != nil {
					return err
				}
				if c.json {
					return c.print(got)
				}
				_, err = fmt.Fprintf(c.out, "%s is connected as %s with %s\n", terminal.Safe(got.Provider), terminal.Safe(nameOf(&got)), terminal.Safe(strings.Join(got.Scopes, " ")))
				return err
			})
		},
	}
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what plugins are to do there, in the provider's words; several with spaces or commas")
	cmd.Flags().BoolVar(&quiet, "no-browser", false, "open no browser")
	return c.withJSON(cmd)
}

// words takes apart what is written with spaces.
func words(flags []string) []string { return strings.Fields(strings.Join(flags, " ")) }

// nameOf is how people know an account.
func nameOf(a *account.Account) string {
	if a.Email != "" {
		return a.Email
	}
	return terminal.Dash(a.Subject)
}

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
	cmd := &cobra.Command{Use: "accounts", Short: "See, test and remove the accounts that you have connected"}
	cmd.AddCommand(c.accountsList(), c.accountsTest(), c.accountsRemove())
	return cmd
}

func (c *command) accountsList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the providers and your accounts with them, without tokens",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withAccounts(cmd, func(s host.Accounts) error {
				all, err := s.List(cmd.Context())
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"accounts": all})
				}
				if len(all) == 0 {
					c.say("no provider is configured; add one under auth: providers in mortise.yaml")
				}
				t := terminal.NewTable(c.out, "PROVIDER", "ACCOUNT", "STATE", "SCOPES", "CONNECTED", "SERVICE ACCOUNT")
				for i := range all {
					robot := "-"
					if all[i].Service {
						robot = "yes"
					}
					if a := all[i].Account; a != nil {
						t.Row(all[i].Provider, nameOf(a), accountNow(a), strings.Join(a.Scopes, " "), terminal.Clock(a.Connected), robot)
					} else {
						t.Row(all[i].Provider, "-", "not connected", "-", "-", robot)
					}
				}
				return t.Flush()
			})
		},
	})
}

func accountNow(a *account.Account) string {
	switch {
	case a.Gone != "":
		return "gone"
	case a.Renewable || a.Expires.IsZero():
		return "connected"
	}
	return "until " + terminal.Clock(a.Expires)
}

func (c *command) accountsTest() *cobra.Command {
	mode, subject := account.User, ""
	var scopes []string
	cmd := &cobra.Command{
		Use:   "test PROVIDER",
		Short: "Try whether a token can be had, and say why not",
		Long: `Try whether a token can be had, and say why not.

Your own account's is renewed; with --mode service_account or domain_delegate one
of the host's service account is asked for. The token is not shown.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withAccounts(cmd, func(s host.Accounts) error {
				got, err := s.Test(cmd.Context(), args[0], mode, subject, words(scopes))
				if err != nil {
					return err
				}
				if c.json {
					return c.print(got)
				}
				as := strings.ReplaceAll(got.Mode, "_", " ")
				if got.Target != "" {
					as += " for " + got.Target
				}
				_, err = fmt.Fprintf(c.out, "%s gives a token as %s\n", terminal.Safe(got.Provider), terminal.Safe(as))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&mode, "mode", mode, "as whom: user, service_account or domain_delegate")
	cmd.Flags().StringVar(&subject, "subject", "", "for whom a delegate stands in; yourself without it")
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what the token is to be for")
	return c.withJSON(cmd)
}

func (c *command) accountsRemove() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "remove PROVIDER",
		Short: "Forget your account with a provider, and tell the provider so",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withAccounts(cmd, func(s host.Accounts) error {
				gone, err := s.Remove(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if c.json {
					return c.print(gone)
				}
				if !gone.Revoked {
					c.say("its tokens were not taken back: %s", gone.Problem)
				}
				_, err = fmt.Fprintf(c.out, "the account %s with %s is gone\n", terminal.Safe(nameOf(&gone.Account)), terminal.Safe(args[0]))
				return err
			})
		},
	})
}

// withAccounts opens the host and does something about one's accounts.
func (c *command) withAccounts(cmd *cobra.Command, do func(host.Accounts) error) (err error) {
	a, err := c.open(cmd.Context())
	if err != nil {
		return err
	}
	defer closing(a, &err)
	return do(a.As(c.principal(a)).Accounts())
}
