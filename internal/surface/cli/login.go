package cli

import (
	"context"
	"errors"
	"fmt"
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
		short: "Log in to a remote host and use it from now on",
		long: `Log in to a remote host and use it from now on.

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
		token, err := terminal.Phrase(c.in, c.errs, "the token")
		if err != nil {
			return done{}, usage{err}
		}
		kept, who, err := client.Login(ctx, c.server, token, name, c.say)
		if errors.As(err, new(client.Misuse)) {
			err = usage{err}
		}
		return done{value: view.ContextOf(kept.Name, kept.URL, who.Principal, true), said: fmt.Sprintf("%s is %s, as %s; it is in use", kept.Name, kept.URL, who.Principal)}, err
	})
}

func (c *command) logout() *cobra.Command {
	return c.change(spec{
		use: "logout [NAME]", short: "Log out: delete a context and its token", example: "  mortise logout", door: nowhere,
		long: "Log out: delete a context and its token. The token stays good\nuntil it expires; 'mortise tokens revoke' ends it.",
	}, func(_ context.Context, q *ask) (done, error) { return forgot(strings.Join(q.args, "")) })
}

func forgot(name string) (done, error) {
	gone, err := client.Forget(name)
	return done{value: view.ContextOf(gone.Name, gone.URL, gone.Principal, false), said: fmt.Sprintf("%s is forgotten, with its token", gone.Name)}, err
}

func (c *command) contexts() *cobra.Command {
	return group(spec{use: "contexts", short: "Manage the hosts that you are logged in to"},
		list(c, spec{use: "list", short: "List the hosts that you have logged in to", example: "  mortise contexts list", door: nowhere}, view.Contexts,
			func(context.Context, *ask) (rows []view.Context, err error) {
				all, err := client.ReadContexts()
				for _, one := range all.All {
					rows = append(rows, view.ContextOf(one.Name, one.URL, one.Principal, one.Name == all.Current))
				}
				return rows, err
			}),
		c.change(spec{use: "use NAME", short: "Switch to another host", example: "  mortise contexts use mortise.example.com", door: nowhere},
			func(_ context.Context, q *ask) (done, error) {
				used, err := client.Use(q.args[0])
				return done{value: view.ContextOf(used.Name, used.URL, used.Principal, true), said: fmt.Sprintf("%s is in use: %s, as %s", used.Name, used.URL, used.Principal)}, err
			}),
		c.change(spec{use: "remove NAME", short: "Delete a context and its token", example: "  mortise contexts remove mortise.example.com", door: nowhere},
			func(_ context.Context, q *ask) (done, error) { return forgot(q.args[0]) }))
}

func (c *command) console() *cobra.Command {
	var show bool
	return c.change(spec{
		use: "console", short: "Open the web console in your browser, signed in", example: "  mortise console --print", args: cobra.NoArgs, door: nowhere,
		long: "Open the web console of the host that serves the data directory in your browser, signed in\nas its owner, or that of the host of --server, where you sign in yourself.",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&show, "print", false, "print the link: it is good once, for 5 minutes, on this machine")
		},
	}, func(ctx context.Context, _ *ask) (done, error) {
		link, err := client.Console(ctx, c.options())
		said := link
		if err == nil && !show {
			said, err = "the console is open in your browser", client.OpenConsole(c.home, link)
		}
		return done{value: map[string]string{"link": link}, said: said}, err
	})
}
