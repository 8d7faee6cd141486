package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/upkeep"
)

func (c *command) doctor() *cobra.Command {
	return c.command(spec{use: "doctor", short: "Say what this machine has and what is missing", example: "  mortise doctor", door: nowhere},
		func(ctx context.Context, _ *ask) error {
			var found []upkeep.Finding
			healthy := false
			_ = c.during("looking at this machine", func() (err error) {
				found, healthy, err = upkeep.Examine(ctx, upkeep.Subject{Home: c.home, Config: c.config, Database: c.databaseURL(), Read: c.reading, Open: c.open})
				return err
			})
			var printed error
			if c.json {
				printed = c.print(map[string]any{"ok": healthy, "findings": found})
			} else {
				printed = upkeep.Findings(c.out, found)
			}
			if printed != nil || healthy {
				return printed
			}
			return reported{errors.New("this host cannot work here")}
		})
}
