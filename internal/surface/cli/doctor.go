package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host/doctor"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) doctor() *cobra.Command {
	return c.command(spec{use: "doctor", short: "Say what this machine has and what is missing", example: "  mortise doctor", door: nowhere},
		func(ctx context.Context, _ *ask) error {
			var found []doctor.Finding
			err := c.during("looking at this machine", func() (err error) { found, err = c.examine(ctx); return err })
			if printed := c.examined(found, err == nil && doctor.Healthy(found)); printed != nil || err == nil && doctor.Healthy(found) {
				return printed
			}
			return reported{errors.New("this host cannot work here")}
		})
}

// examine looks at everything that a host stands on.
func (c *command) examine(ctx context.Context) ([]doctor.Finding, error) {
	found, err := doctor.Examine(ctx, doctor.Subject{
		Home: c.home, Config: c.config, Database: c.databaseURL(), Read: c.reading,
		Open: func(ctx context.Context) (*doctor.Host, error) {
			a, err := c.open(ctx)
			if err != nil {
				return nil, err
			}
			return a.Examined(), nil
		},
	})
	for i, f := range found {
		if f.Err != nil {
			found[i].Detail = view.Message(f.Err)
		}
	}
	return found, err
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
