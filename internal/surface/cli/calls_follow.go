package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) callsFollow() *cobra.Command {
	return &cobra.Command{
		Use:   "follow ID",
		Short: "Follow a call until it ends",
		Long: `Follow a call until it ends. It changes nothing: a
queued call is run by others. The status is that of 'mortise run'.`,
		Example:           "  mortise calls follow 3f21aa",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeCalls,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reach(cmd.Context(), inStanding, func(q *ask) error {
				row, err := findCall(cmd.Context(), q.Host, args[0], "follow")
				if err != nil {
					return err
				}
				return c.follow(cmd.Context(), q.Host, row.ID)
			})
		},
	}
}

// follow prints the entries of a call until its end, and returns how that was.
func (c *command) follow(ctx context.Context, k client.Host, id string) error {
	over, err := k.Calls().Follow(ctx, id, func(e *plugin.Entry) { view.CallEntry(c.out, e) })
	var waits unfinished
	switch {
	case err == nil:
		return nil
	case !over && plugin.CodeOf(err) == plugin.CodeApprovalExpired:
		c.say("mortise: %s", view.Message(err))
	case !over && !errors.As(err, &waits):
		return err
	}
	return reported{err}
}

func (c *command) callsWait() *cobra.Command {
	var wait time.Duration
	return c.command(spec{
		anywhere: true,
		use:      "wait ID",
		short:    "Wait for a call to end, and run it if it is queued here",
		long: `Wait for the end of a call and print its result as 'mortise run' does, with the same
status. A queued call is run here, unless another process takes it first. If the call
waits for approval, the command waits too.`,
		example:  "  mortise calls wait 3f21aa --timeout 30s",
		complete: c.completeCalls,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().DurationVar(&wait, "timeout", 0, "how long to wait; 0 is for ever. What runs here is not cut short")
		},
		check: func([]string) error {
			if wait < 0 {
				return usage{fmt.Errorf("--timeout %s: it cannot be negative", wait)}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error {
		row, err := findCall(ctx, q.Host, q.args[0], "wait for")
		if err != nil {
			return err
		}
		var res plugin.Result
		if row.State != host.CallPending {
			res, err = c.await(ctx, q, row.ID, wait, nil)
		} else if res, err = q.Calls().Standing(ctx, row.ID); err == nil {
			res, err = c.hold(ctx, q, res, wait)
		}
		if err := c.closeBooks(q, true); err != nil {
			return err
		}
		return c.answer("", res, err)
	})
}

func (c *command) callsCancel() *cobra.Command {
	var reason string
	return c.command(spec{
		anywhere: true,
		use:      "cancel ID",
		short:    "Cancel a call",
		long: `Stop a call. One that waits or is queued fails at once. One that runs is told by the
process that runs it, and ends by itself: effects that it had are not undone. The
principal that made the call may stop it, and so may those who may approve its
operation.`,
		example:  `  mortise calls cancel 3f21aa --reason "the customer withdrew"`,
		complete: c.completeCalls,
		flags:    func(cmd *cobra.Command) { reasonFlag(cmd, &reason) },
	}, func(ctx context.Context, q *ask) error { return c.cancelCall(ctx, q, q.args[0], reason) })
}

func (c *command) cancelCall(ctx context.Context, q *ask, given, reason string) error {
	row, err := q.Calls().FindToControl(ctx, given, "cancel")
	if err != nil {
		return err
	}
	if row, err = q.Calls().Cancel(ctx, row.ID, reason); err != nil {
		return err
	}
	return c.showRow(row, "")
}

// showRow prints the status of a call after a command changed it.
func (c *command) showRow(row *host.CallRow, next string) error {
	if c.json {
		return c.print(view.CallRowOf(row))
	}
	view.CallState(c.out, c.errs, row, next)
	return nil
}
