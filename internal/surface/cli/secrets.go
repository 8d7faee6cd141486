package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) secrets() *cobra.Command {
	return group(spec{
		use:   "secrets",
		short: "Store secrets for plugins, encrypted",
		long: `Store secrets for plugins, encrypted.

Secrets are encrypted in the database. The key that it takes is in secrets.key in
the data directory, made with the first secret, or where secrets in mortise.yaml
says: back it up apart from the database. No command shows a value.`,
	}, c.secretsSet(), c.secretsList(), c.secretsDelete(), c.secretsRotate(), c.secretsCheck())
}

// placeFlags gives a command the flags that say whose a secret is.
func placeFlags(cmd *cobra.Command, p *host.SecretPlace) {
	cmd.Flags().StringVar(&p.Plugin, "plugin", "", "for this plugin alone; for all plugins without it")
	cmd.Flags().StringVar(&p.User, "user", "", "of another principal, whom mortise.yaml names; it needs the right to configure")
	cmd.Flags().BoolVar(&p.System, "system", false, "of everybody; it needs the right to configure")
}

func (c *command) secretsSet() *cobra.Command {
	var p host.SecretPlace
	var file, value string
	return c.change(spec{
		anywhere: true,
		use:      "set NAME",
		short:    "Set a secret, from a prompt, a file or standard input",
		long: `Set a secret, in place of an earlier one of the same scope. It is your own, unless
--user or --system says otherwise.

The value is asked for at a terminal, where it is not shown, and is otherwise read
from standard input or --from-file. It is never an argument, which others on the
machine could see. A line break at its very end does not count.`,
		example: `  mortise secrets set api_key --plugin gmail_digest
  mortise secrets set api_key --system --from-file key.txt`,
		flags: func(cmd *cobra.Command) {
			placeFlags(cmd, &p)
			cmd.Flags().StringVar(&file, "from-file", "", "read the value from this file")
		},
		check: func(args []string) (err error) {
			p.Name = args[0]
			if p.Plugin == host.SignInsPlugin {
				return plugin.Errorf(plugin.CodeInvalidInput, "sign-ins are made and removed, and not set: mortise mcp sign-in, mortise mcp sign-out")
			}
			value, err = c.secretValue(p.Name, file)
			return err
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		i, err := q.Secrets().Set(ctx, p, value)
		return secretDone(i, "is set"), err
	})
}

func (c *command) secretsDelete() *cobra.Command {
	var p host.SecretPlace
	var all bool
	return c.change(spec{
		anywhere: true,
		use:      "delete NAME | --all",
		short:    "Delete a secret",
		example: `  mortise secrets delete api_key --plugin gmail_digest
  mortise secrets delete --all`,
		args: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) || len(args) > 1 {
				return errors.New("it takes one name, or --all")
			}
			return nil
		},
		flags: func(cmd *cobra.Command) {
			placeFlags(cmd, &p)
			cmd.Flags().BoolVar(&all, "all", false, "all secrets of everybody, and their keys: the way out where the master key is lost")
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		if all {
			n, err := q.Secrets().DeleteAll(ctx)
			return done{value: map[string]any{"deleted": n}, said: fmt.Sprintf("%d secrets are gone, and their keys", n)}, err
		}
		p.Name = q.args[0]
		i, err := q.Secrets().Delete(ctx, p)
		return secretDone(i, "is gone"), err
	})
}

func (c *command) secretsList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List the secrets that you may see, without their values", example: "  mortise secrets list"}, view.Secrets,
		func(ctx context.Context, q *ask) ([]host.SecretInfo, error) { return q.Secrets().List(ctx) })
}

func (c *command) secretsRotate() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "rotate",
		short:    "Rotate the keys and re-encrypt all secrets",
		long: `Rotate the keys and re-encrypt all secrets.

Where the master key is the host's own, in secrets.key, another one takes its
place; other hosts on the same database need a copy of the file afterwards. Where
mortise.yaml says where it is, put the new key there first, on the first line, and
the old one below it; that line can go once this has ended. The old keys stay until
nothing needs them: after a crash, run it again.`,
		example: "  mortise secrets rotate",
	}, func(ctx context.Context, q *ask) (done, error) {
		defer c.errs.Begin("encrypting the secrets again").End()
		r, err := q.Secrets().Rotate(ctx)
		return done{value: r, said: fmt.Sprintf("%d secrets were encrypted again, under the master key %s", r.Secrets, r.Master)}, err
	})
}

func (c *command) secretsCheck() *cobra.Command {
	return list(c, spec{
		anywhere: true,
		use:      "check [PLUGIN]",
		short:    "Show which secrets operations need and which are missing",
		example:  "  mortise secrets check gmail_digest",
	}, view.NeededSecrets, func(ctx context.Context, q *ask) ([]host.SecretState, error) {
		return q.Secrets().Check(ctx, strings.Join(q.args, ""))
	})
}

// secretDone is what became of a secret.
func secretDone(i host.SecretInfo, what string) done {
	return done{value: map[string]any{"name": i.Name, "plugin": i.Plugin, "scope": i.Scope, "subject": i.Subject}, said: view.Secret(i, what)}
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
	raw, err := io.ReadAll(io.LimitReader(in, host.MaxSecret+3))
	if err != nil {
		return "", fmt.Errorf("reading the secret: %w", err)
	}
	value = strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	if len(value) > host.MaxSecret {
		return "", plugin.Errorf(plugin.CodeInputTooLarge, "the secret %s has more than %d bytes, which is the most that is kept", name, host.MaxSecret)
	}
	return value, c.scrubber.Know(value)
}
