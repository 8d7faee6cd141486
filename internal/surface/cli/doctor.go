package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/upkeep"
)

func (c *command) doctor() *cobra.Command {
	return c.command(spec{use: "doctor", short: "Check this machine or a server for problems", example: "  mortise doctor\n  mortise doctor --server https://mortise.example.com", door: nowhere,
		long: `Say what this machine has and what is missing, or with --server how a host can be used
from here: whether it is reached and ready, until when its certificate lasts, whether its
clock is right, whether the token in MORTISE_TOKEN, or of
the context, is good, how long a request takes, and
whether live events come through. It changes nothing there.`},
		func(ctx context.Context, _ *ask) error {
			look, at, failed := c.examine, "this machine", "this host cannot work here"
			o := c.options()
			if t, err := o.Find(); err != nil {
				return usage{err}
			} else if t.Remote() {
				if err := upkeep.CheckServer(t.Context.URL); err != nil {
					return usage{err}
				}
				look, at, failed = c.visit(t.Context), t.Context.URL, "this host cannot be used from here"
			}
			var found []upkeep.Finding
			healthy := false
			_ = c.during("looking at "+at, func() (err error) { found, healthy, err = look(ctx); return err })
			var printed error
			if c.json {
				printed = c.print(map[string]any{"ok": healthy, "findings": found})
			} else {
				printed = upkeep.Findings(c.out, found)
			}
			if printed != nil || healthy {
				return printed
			}
			return reported{errors.New(failed)}
		})
}

// examine looks at everything that a host stands on.
func (c *command) examine(ctx context.Context) ([]upkeep.Finding, bool, error) {
	return upkeep.Examine(ctx, upkeep.Subject{Home: c.home, Config: c.config, Database: c.databaseURL(), Read: c.reading, Open: c.open})
}

// visit looks at a host over the network.
func (c *command) visit(at client.Context) func(context.Context) ([]upkeep.Finding, bool, error) {
	return func(ctx context.Context) ([]upkeep.Finding, bool, error) {
		return upkeep.ExamineServer(ctx, at.URL, at.Token)
	}
}
