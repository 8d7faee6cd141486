package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/check"
)

var errChecks = errors.New("some checks failed")

func (c *command) check() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "check PATH",
		Short: "Judge a plugin, or a tree of them, by its contract",
		Long: `Judge a plugin, or a tree of them, by its contract: the manifest, whether it starts,
whether its code is what the manifest says, whether its examples run and its tools
give the same result twice. It runs in a host of its own that is thrown away.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var show func(check.Result)
			if !c.json {
				show = c.showCheck
			}
			report, err := check.Run(cmd.Context(), args[0], show)
			if err != nil {
				return err
			}
			failed := report.Failed()
			if c.json {
				if err := c.print(map[string]any{"ok": failed == 0, "failed": failed, "results": report.Results}); err != nil {
					return err
				}
			} else {
				fmt.Fprintf(c.out, "%d checks, %d failed\n", len(report.Results), failed)
			}
			if failed > 0 {
				return reported{errChecks}
			}
			return nil
		},
	})
}

func (c *command) showCheck(r check.Result) {
	line := fmt.Sprintf("%-7s  %s: %s", r.Outcome, r.Plugin, r.Check)
	if r.Detail != "" {
		line += ": " + r.Detail
	}
	fmt.Fprintln(c.out, safe(line))
}
