package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) secrets() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Store secrets for plugins, encrypted",
		Long: `Store secrets for plugins, encrypted.

Secrets are encrypted in the database. The key that it takes is in secrets.key in
the data directory, made with the first secret, or where secrets in mortise.yaml
says: back it up apart from the database. No command shows a value.`,
	}
	cmd.AddCommand(c.secretsSet(), c.secretsList(), c.secretsDelete(), c.secretsRotate(), c.secretsCheck())
	return cmd
}

// placeFlags gives a command the flags that say whose a secret is.
func placeFlags(cmd *cobra.Command, p *host.SecretPlace) {
	cmd.Flags().StringVar(&p.Plugin, "plugin", "", "for this plugin alone; for all plugins without it")
	cmd.Flags().StringVar(&p.User, "user", "", "of another principal, whom mortise.yaml names; it needs the right to configure")
	cmd.Flags().BoolVar(&p.System, "system", false, "of everybody; it needs the right to configure")
}

func (c *command) secretsSet() *cobra.Command {
	var p host.SecretPlace
	var file string
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Set a secret; its value is asked for, or read from a file or standard input",
		Long: `Set a secret, in place of an earlier one of the same scope. It is your own, unless
--user or --system says otherwise.

The value is asked for at a terminal, where it is not shown, and is otherwise read
from standard input or --from-file. It is never an argument, which others on the
machine could see. A line break at its very end does not count.`,
		Example: `  mortise secrets set api_key --plugin gmail_digest
  mortise secrets set api_key --system --from-file key.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			value, err := c.secretValue(p.Name, file)
			if err != nil {
				return err
			}
			return c.withSecrets(cmd, func(s host.Secrets) error {
				i, err := s.Set(cmd.Context(), p, value)
				if err != nil {
					return err
				}
				return c.toldSecret(i, "is set")
			})
		},
	}
	placeFlags(cmd, &p)
	cmd.Flags().StringVar(&file, "from-file", "", "read the value from this file")
	return c.withJSON(cmd)
}

func (c *command) secretsDelete() *cobra.Command {
	var p host.SecretPlace
	var all bool
	cmd := &cobra.Command{
		Use:   "delete NAME | --all",
		Short: "Take a secret away",
		Args: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) || len(args) > 1 {
				return errors.New("it takes one name, or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSecrets(cmd, func(s host.Secrets) error {
				if all {
					n, err := s.DeleteAll(cmd.Context())
					if err != nil {
						return err
					}
					if c.json {
						return c.print(map[string]any{"deleted": n})
					}
					_, err = fmt.Fprintf(c.out, "%d secrets are gone, and their keys\n", n)
					return err
				}
				p.Name = args[0]
				i, err := s.Delete(cmd.Context(), p)
				if err != nil {
					return err
				}
				return c.toldSecret(i, "is gone")
			})
		},
	}
	placeFlags(cmd, &p)
	cmd.Flags().BoolVar(&all, "all", false, "all secrets of everybody, and their keys: the way out where the master key is lost")
	return c.withJSON(cmd)
}

func (c *command) secretsList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the secrets that you may see, without their values",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withSecrets(cmd, func(s host.Secrets) error {
				all, err := s.List(cmd.Context())
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"secrets": append([]secret.Info{}, all...)})
				}
				t := terminal.NewTable(c.out, "NAME", "PLUGIN", "SCOPE", "OF", "SET AT", "LABELS")
				for _, i := range all {
					t.Row(i.Name, i.Plugin, i.Scope, terminal.Dash(i.Subject), terminal.Clock(i.UpdatedAt), terminal.Dash(strings.Join(i.Labels, ", ")))
				}
				return t.Flush()
			})
		},
	})
}

func (c *command) secretsRotate() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "rotate",
		Short: "Change the keys and encrypt all secrets again",
		Long: `Change the keys and encrypt all secrets again.

Where the master key is the host's own, in secrets.key, another one takes its
place; other hosts on the same database need a copy of the file afterwards. Where
mortise.yaml says where it is, put the new key there first, on the first line, and
the old one below it; that line can go once this has ended. The old keys stay until
nothing needs them: after a crash, run it again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withSecrets(cmd, func(s host.Secrets) error {
				r, err := s.Rotate(cmd.Context())
				if err != nil {
					return err
				}
				if c.json {
					return c.print(r)
				}
				_, err = fmt.Fprintf(c.out, "%d secrets were encrypted again, under the master key %s\n", r.Secrets, r.Master)
				return err
			})
		},
	})
}

func (c *command) secretsCheck() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "check [PLUGIN]",
		Short: "Show which secrets operations need, and whether they are there for you",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSecrets(cmd, func(s host.Secrets) error {
				states, err := s.Check(cmd.Context(), strings.Join(args, ""))
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"secrets": states})
				}
				if len(states) == 0 {
					c.say("no operation needs a secret")
					return nil
				}
				t := terminal.NewTable(c.out, "PLUGIN", "OPERATION", "SECRET", "MAY BE OF", "STATE")
				for _, s := range states {
					t.Row(s.Plugin+"@"+s.Version, s.Operation, s.Name, strings.ReplaceAll(s.Scope, "_", " "), thereOr(s))
				}
				return t.Flush()
			})
		},
	})
}

func thereOr(s host.SecretState) string {
	switch {
	case s.There == secret.User:
		return "set by you"
	case s.There != "":
		return "set for everybody"
	case s.Optional:
		return "not set, optional"
	}
	return "missing"
}

// toldSecret says what became of a secret.
func (c *command) toldSecret(i secret.Info, what string) error {
	if c.json {
		return c.print(map[string]any{"name": i.Name, "plugin": i.Plugin, "scope": i.Scope, "subject": i.Subject})
	}
	of, with := "everybody", "all plugins"
	if i.Scope == secret.User {
		of = i.Subject
	}
	if i.Plugin != secret.Anyone {
		with = i.Plugin
	}
	_, err := fmt.Fprintf(c.out, "%s %s for %s with %s\n", terminal.Safe(i.Name), what, terminal.Safe(of), terminal.Safe(with))
	return err
}

// secretValue asks for the value of a secret, or reads it.
func (c *command) secretValue(name, file string) (value string, err error) {
	in := c.in
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", usage{fmt.Errorf("the secret cannot be read: %w", err)}
		}
		defer f.Close()
		in = f
	} else if f, ok := c.in.(*os.File); ok && terminal.Is(f) {
		if value, err = terminal.Secret(f, c.errs, name); err != nil {
			return "", fmt.Errorf("reading the secret: %w", err)
		}
		return value, c.scrubber.Know(value)
	}
	raw, err := io.ReadAll(io.LimitReader(in, secret.MaxValue+3))
	if err != nil {
		return "", fmt.Errorf("reading the secret: %w", err)
	}
	value = strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	if len(value) > secret.MaxValue {
		return "", plugin.Errorf(plugin.CodeInputTooLarge, "the secret %s has more than %d bytes, which is the most that is kept", name, secret.MaxValue)
	}
	return value, c.scrubber.Know(value)
}

// withSecrets opens the host and does something about secrets.
func (c *command) withSecrets(cmd *cobra.Command, do func(host.Secrets) error) (err error) {
	a, err := c.open(cmd.Context())
	if err != nil {
		return err
	}
	defer closing(a, &err)
	return do(a.As(c.principal(a)).Secrets())
}
