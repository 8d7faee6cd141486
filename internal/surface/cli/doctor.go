package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host/doctor"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) doctor() *cobra.Command {
	var server string
	return c.command(spec{use: "doctor", short: "Say what this machine or a server has and what is missing", example: "  mortise doctor\n  mortise doctor --server https://mortise.example.com", door: nowhere,
		long: `Say what this machine has and what is missing, or with --server how a host can be used
from here: whether it is reached and ready, until when its certificate lasts, whether its
clock is right, whether the token in MORTISE_TOKEN is good, how long a request takes, and
whether live events come through. It changes nothing there.`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&server, "server", "", "look at the host at this URL, with the token in MORTISE_TOKEN")
		}},
		func(ctx context.Context, _ *ask) error {
			var found []doctor.Finding
			look, at, failed := c.examine, "this machine", "this host cannot work here"
			if server != "" {
				if err := doctor.CheckServer(server); err != nil {
					return usage{err}
				}
				look, at, failed = c.visitor(server), server, "this host cannot be used from here"
			}
			err := c.during("looking at "+at, func() (err error) { found, err = look(ctx); return err })
			for i, f := range found {
				if f.Err != nil {
					found[i].Detail = view.Message(f.Err)
				}
			}
			if printed := c.examined(found, err == nil && doctor.Healthy(found)); printed != nil || err == nil && doctor.Healthy(found) {
				return printed
			}
			return reported{errors.New(failed)}
		})
}

// visitor looks at a host over the network.
func (c *command) visitor(url string) func(context.Context) ([]doctor.Finding, error) {
	return func(ctx context.Context) ([]doctor.Finding, error) {
		return doctor.ExamineServer(ctx, doctor.Server{URL: url, Token: os.Getenv("MORTISE_TOKEN")})
	}
}

// examine looks at everything that a host stands on.
func (c *command) examine(ctx context.Context) ([]doctor.Finding, error) {
	return doctor.Examine(ctx, doctor.Subject{
		Home: c.home, Config: c.config, Database: c.databaseURL(), Read: c.reading,
		Open: func(ctx context.Context) (*doctor.Host, error) {
			a, err := c.open(ctx)
			if err != nil {
				return nil, err
			}
			return a.Examined(), nil
		},
	})
}

func (c *command) examined(found []doctor.Finding, healthy bool) error {
	if c.json {
		return c.print(map[string]any{"ok": healthy, "findings": found})
	}
	t := terminal.NewTable(c.out, "", "WHAT", "DETAIL")
	for _, f := range found {
		mark := "ok"
		switch {
		case !f.OK && f.Needed:
			mark = "fail"
		case !f.OK:
			mark = "warn"
		}
		t.Row(mark, f.What, terminal.OneLine(f.Detail, 300))
	}
	return t.Flush()
}
