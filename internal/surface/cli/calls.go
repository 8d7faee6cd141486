package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) calls() *cobra.Command {
	return group(spec{
		use:   "calls",
		short: "List, follow, cancel and settle calls",
		long: `List, follow, cancel and settle calls: those with effects, a key or an approval, and
those that were queued. All calls are in 'mortise ledger list'.

Ids may be abbreviated to their beginning, or to the last six characters or more.`,
	}, c.callsList(), c.callsShow(), c.callsFollow(), c.callsWait(), c.callsCancel(), c.callsSettle())
}

func (c *command) callsList() *cobra.Command {
	var f host.CallFilter
	var state string
	var unknown bool
	return list(c, spec{
		use: "list", short: "List calls, the newest first", example: "  mortise calls list --state in_progress",
		anywhere: true, door: inStanding, watch: true, limit: &limit{"limit", &f.Limit, 20, "how many calls"},
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.BoolVar(&unknown, "unknown", false, "only those whose outcome is unknown")
			flags.StringVar(&state, "state", "", "only pending_approval, in_progress, succeeded, failed or unknown")
			flags.StringVar(&f.Operation, "operation", "", "only calls of this operation: plugin/operation")
			flags.StringVar(&f.Plan, "plan", "", "only the steps of this plan")
		},
		check: func([]string) error {
			if unknown && state != "" && state != string(plugin.Unknown) {
				return onlyOne("--unknown", "--state")
			}
			if unknown {
				state = string(plugin.Unknown)
			}
			if state != "" && !host.IsCallStatus(plugin.Status(state)) {
				return usage{fmt.Errorf("--state %s: there are pending_approval, in_progress, succeeded, failed, unknown", state)}
			}
			return nil
		},
	}, view.Calls, func(ctx context.Context, q *ask) ([]view.CallRow, error) {
		list := q.Calls().List
		if state != "" {
			list = func(ctx context.Context, f host.CallFilter) ([]host.CallRow, error) {
				return q.Calls().ListIn(ctx, f, plugin.Status(state))
			}
		}
		rows, err := list(ctx, f)
		views := make([]view.CallRow, len(rows))
		for i := range rows {
			views[i] = view.CallRowOf(&rows[i])
		}
		return views, err
	})
}

func (c *command) callsShow() *cobra.Command {
	return show(c, spec{
		use: "show ID", short: "Show a call with its journal of effects, its approval and its entries", example: "  mortise calls show 3f21aa",
		complete: c.completeCalls, anywhere: true, door: inStanding,
	}, func(ctx context.Context, q *ask) (s view.CallShown, err error) {
		shown, err := q.Calls().Show(ctx, q.args[0])
		if err != nil {
			return s, err
		}
		return view.CallShownOf(shown), nil
	}, func(w io.Writer, s view.CallShown) error { return view.Call(w, c.errs, s) })
}
