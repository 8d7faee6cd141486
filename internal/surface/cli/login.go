package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) login() *cobra.Command {
	var name string
	return c.change(spec{
		use:   "login --server URL",
		short: "Keep a token for a host elsewhere, and use that host from now on",
		long: `Keep a token for a host elsewhere, and use that host from now on.

The token is asked for without being shown, or is one line of standard input; the owner
of the host makes it with 'mortise tokens create'. The host is asked whose it is, and it
is kept in $XDG_CONFIG_HOME/mortise/contexts.json, which you alone can read.

Commands go to the context in use unless --server, --embedded or --home say otherwise.`,
		example: `  mortise login --server https://mortise.example.com
  mortise login --server https://mortise.example.com --name work < token`,
		args: cobra.NoArgs,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&name, "name", "", "what the context is called; the name of the host if empty")
		},
		check: func([]string) error {
			if c.server == "" || c.server == client.Here {
				return usage{errors.New("--server says which host: https://NAME:PORT")}
			}
			return nil
		},
	}, func(ctx context.Context, _ *ask) (done, error) {
		token, err := c.readToken()
		if err != nil {
			return done{}, err
		}
		kept, who, err := client.Login(ctx, c.server, token, name, c.say)
		if errors.As(err, new(client.Misuse)) {
			err = usage{err}
		}
		return done{value: view.ContextOf(kept.Name, kept.URL, who.Principal, true), said: fmt.Sprintf("%s is %s, as %s; it is in use", kept.Name, kept.URL, who.Principal)}, err
	})
}

// maxTokenLine bounds what is read as a token.
const maxTokenLine = 4096

// readToken asks for a token without showing it, or reads a line of standard input.
func (c *command) readToken() (string, error) {
	if f, ok := c.in.(*os.File); ok && terminal.Is(f) {
		return terminal.Secret(f, c.errs, "the token")
	}
	raw, err := io.ReadAll(io.LimitReader(c.in, maxTokenLine))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, " \n\t") {
		return "", usage{errors.New("standard input is one line, the token")}
	}
	return token, nil
}

func (c *command) logout() *cobra.Command {
	return c.change(spec{
		use: "logout [NAME]", short: "Forget a context with its token, the one in use without a name", example: "  mortise logout", door: nowhere,
		long: "Forget a context with its token, the one in use without a name. The token stays good\nuntil it expires; 'mortise tokens revoke' ends it.",
	}, func(_ context.Context, q *ask) (done, error) { return forgot(strings.Join(q.args, "")) })
}

func forgot(name string) (done, error) {
	gone, err := client.Forget(name)
	return done{value: view.ContextOf(gone.Name, gone.URL, gone.Principal, false), said: fmt.Sprintf("%s is forgotten, with its token", gone.Name)}, err
}

func (c *command) contexts() *cobra.Command {
	return group(spec{use: "contexts", short: "Choose among the hosts that you have logged in to"},
		list(c, spec{use: "list", short: "List the hosts that you have logged in to", example: "  mortise contexts list", door: nowhere}, view.Contexts,
			func(context.Context, *ask) (rows []view.Context, err error) {
				all, err := client.ReadContexts()
				for _, one := range all.All {
					rows = append(rows, view.ContextOf(one.Name, one.URL, one.Principal, one.Name == all.Current))
				}
				return rows, err
			}),
		c.change(spec{use: "use NAME", short: "Use a host from now on", example: "  mortise contexts use mortise.example.com", door: nowhere},
			func(_ context.Context, q *ask) (done, error) {
				used, err := client.Use(q.args[0])
				return done{value: view.ContextOf(used.Name, used.URL, used.Principal, true), said: fmt.Sprintf("%s is in use: %s, as %s", used.Name, used.URL, used.Principal)}, err
			}),
		c.change(spec{use: "remove NAME", short: "Forget a host with its token", example: "  mortise contexts remove mortise.example.com", door: nowhere},
			func(_ context.Context, q *ask) (done, error) { return forgot(q.args[0]) }))
}
