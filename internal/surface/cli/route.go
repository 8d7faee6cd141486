package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// maxShown is how many exclusions a person is shown.
const maxShown = 10

func (c *command) route() *cobra.Command {
	var q host.RouteQuery
	var everything bool
	var in string
	var artifacts []string
	return c.command(spec{
		use:   "route TEXT",
		short: "Find the operations that fit a request, and say why",
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
		if err := atHand(ctx, r.API, &query, in, artifacts); err != nil {
			return err
		}
		answer, err := r.Plugins().Route(ctx, query)
		if err != nil {
			return err
		}
		if c.json {
			return c.print(answer)
		}
		return c.showRoute(answer, everything)
	})
}

// showRoute shows a route to a person.
func (c *command) showRoute(a host.Route, everything bool) error {
	fmt.Fprintf(c.out, "pillar: %s, because %s\n", terminal.Safe(a.Pillar), terminal.Safe(a.PillarReason))
	fmt.Fprintf(c.out, "about:  %s\n\n", terminal.Dash(terminal.Safe(strings.Join(a.Facets, " "))))
	if a.Cut {
		c.say("mortise: only the first %d bytes of the text were read", host.MaxRouteText)
	}
	if len(a.Included) == 0 {
		fmt.Fprintln(c.out, "nothing fits")
	} else {
		t := c.fitted(onScreen, "RANK", "OPERATION", "SCORE", "WHY")
		for i, choice := range a.Included {
			t.Row(fmt.Sprint(i+1), choice.Operation, points(choice.Score), why(choice))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(a.Excluded) > 0 {
		fmt.Fprintln(c.out)
		shown := a.Excluded
		if !everything {
			shown = shown[:min(maxShown, len(shown))]
		}
		t := c.fitted(onScreen, "LEFT OUT", "SCORE", "WHY")
		for _, e := range shown {
			t.Row(e.Operation, points(e.Score), e.Reason)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if rest := len(a.Excluded) - len(shown); rest > 0 {
			fmt.Fprintf(c.out, "and %d more: --all shows them\n", rest)
		}
	}
	if len(a.Chains) == 0 {
		return nil
	}
	fmt.Fprintln(c.out)
	t := c.fitted(onScreen, "AFTER", "GOES ON WITH", "THROUGH", "WHY")
	for _, chain := range a.Chains {
		t.Row(chain.From, chain.To, terminal.Dash(chain.Through), chain.Reason)
	}
	return t.Flush()
}

// points spells a score, 2.34.
func points(score float64) string { return strconv.FormatFloat(score, 'f', 2, 64) }

// why says on one line what a score is made of.
func why(choice host.RouteChoice) string {
	var parts []string
	for _, mark := range choice.Reasons {
		parts = append(parts, fmt.Sprintf("+%s %s", points(mark.Points), mark.Why))
	}
	return strings.Join(append(parts, choice.Notes...), "; ")
}
