package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) route() *cobra.Command {
	var q host.RouteQuery
	var everything bool
	var in string
	var artifacts []string
	return c.command(spec{
		anywhere: true,
		use:      "route TEXT",
		short:    "Find the operations that fit a request, with reasons",
		long: `Find the operations that fit a request: at most five, the best first, each with what
speaks for it. Then what was left out, with the reason, and what goes on
with what was found.

Nothing runs, and no model is asked: the same request gives the same answer. What is
experimental or deprecated is left out unless the text names it, or with --hidden.`,
		example: `  mortise route "which hosts sent the most packets?"
  mortise route "who failed to log in?" --artifact auth.log.1 --json`,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringArrayVarP(&artifacts, "artifact", "a", nil, "a file, or an artifact of the session by its id, that the request is about; all of the session if there is none (repeatable)")
			flags.StringVar(&in, "session", os.Getenv("MORTISE_SESSION"), "the session that the request belongs to (or MORTISE_SESSION)")
			flags.StringVar(&q.Pillar, "pillar", "", "the pillar, chosen: "+strings.Join(host.RoutePillars(), ", "))
			flags.StringVar(&q.Last, "after", "", "the plugin, or plugin/operation, that ran last")
			flags.BoolVar(&q.Hidden, "hidden", false, "let what is experimental or deprecated count too")
			flags.BoolVar(&everything, "all", false, "show everything that was left out, not only the first of it")
		},
	}, func(ctx context.Context, r *ask) error {
		query := q
		query.Text = r.args[0]
		if err := atHand(ctx, r.Host, &query, in, artifacts); err != nil {
			return err
		}
		answer, err := r.Plugins().Route(ctx, query)
		if err != nil {
			return err
		}
		if c.json {
			return c.print(answer)
		}
		return view.Route(c.out, c.errs, answer, everything)
	})
}
