package cli

import (
	"context"
	"fmt"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) callsFollow() *cobra.Command {
	return &cobra.Command{
		Use:   "follow ID",
		Short: "Print what happens to a call as it happens, until its end",
		Long: `Print what happens to a call as it happens, until its end. It changes nothing: a
queued call is run by others. The status is that of 'mortise run'.`,
		Example:           "  mortise calls follow 3f21aa",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeCalls,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.readingStanding(cmd.Context(), func(k host.API) error {
				row, err := findCall(cmd.Context(), k, args[0], "follow")
				if err != nil {
					return err
				}
				return c.follow(cmd.Context(), k.Store(), row)
			})
		},
	}
}

// follow prints the entries of a call until its end, and returns how that was.
func (c *command) follow(ctx context.Context, st store.Reader, row *store.CallRow) error {
	shown := map[[2]int64]bool{}
	for {
		// The state first: an end that is seen has its entry written.
		now, err := st.Call(ctx, row.Tenant, row.ID)
		if err != nil {
			return err
		}
		var last plugin.Entry
		for e, err := range st.Entries(ctx, store.EntryFilter{Tenant: row.Tenant, Subject: row.ID}) {
			if err != nil {
				return err
			}
			if place := [2]int64{e.Chain, e.Seq}; !shown[place] {
				shown[place] = true
				c.showEntry(&e)
			}
			if isCall(e) && !e.At.Before(last.At) {
				last = e
			}
		}
		if now.State.Ended() {
			return ending(now, &last)
		}
		if now.State == store.CallPending && !now.WakeAt.After(time.Now()) {
			why := plugin.Errorf(plugin.CodeApprovalExpired, "no approver answered by %s; the next host that runs here records that", now.WakeAt.Format(time.RFC3339))
			c.say("mortise: %s", messageOf(why))
			return reported{why}
		}
		pauseFor(ctx, lookLast)
		if err := ctx.Err(); err != nil {
			return reported{unfinished{err}}
		}
	}
}

// ending is why a call ended badly, as its last entry tells; nil if it did not.
func ending(row *store.CallRow, last *plugin.Entry) error {
	var body struct {
		Error plugin.ErrorRecord `json:"error"`
	}
	switch row.State {
	case store.CallSucceeded:
		return nil
	case store.CallUnknown:
		return reported{plugin.Errorf(plugin.CodeOutcomeUnknown, "call %s may or may not have had its effect", row.ID)}
	}
	_ = json2.Unmarshal(last.Body, &body) // what cannot be read is for verify to find
	return reported{&plugin.Error{Code: plugin.Code(row.Code), Message: body.Error.Message}}
}

func (c *command) callsWait() *cobra.Command {
	var wait time.Duration
	return c.command(spec{
		use:   "wait ID",
		short: "Wait for the end of a call, and run it if it is queued and no other process does",
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
		row, err := findCall(ctx, q.API, q.args[0], "wait for")
		if err != nil {
			return err
		}
		res, err := currentSnapshot(ctx, q.app, snapshot(row))
		if err != nil {
			return err
		}
		if row.State == store.CallPending {
			res, err = c.hold(ctx, q.app, res, wait)
		} else {
			res, err = c.await(ctx, q.app, row.ID, wait, nil)
		}
		if err := c.closeBooks(q.app, true); err != nil {
			return err
		}
		return c.answer("", res, err)
	})
}

func (c *command) callsCancel() *cobra.Command {
	var reason string
	return c.command(spec{
		use:   "cancel ID",
		short: "Stop a call: one that waits fails at once, one that runs is told",
		long: `Stop a call. One that waits or is queued fails at once. One that runs is told by the
process that runs it, and ends by itself: effects that it had are not undone. The
principal that made the call may stop it, and so may those who may approve its
operation.`,
		example:  `  mortise calls cancel 3f21aa --reason "the customer withdrew"`,
		complete: c.completeCalls,
		flags:    func(cmd *cobra.Command) { cmd.Flags().StringVar(&reason, "reason", "", "why, for the record") },
	}, func(ctx context.Context, q *ask) error { return c.cancelCall(ctx, q.app, q.args[0], reason) })
}

func (c *command) cancelCall(ctx context.Context, a *app.App, given, reason string) error {
	k := a.As(a.Principal)
	row, err := k.Calls().FindToControl(ctx, given, "cancel")
	if err != nil {
		return err
	}
	was, err := a.Kernel.Cancel(ctx, row.Tenant, row.ID, a.Principal.ID, reason)
	if err != nil {
		return err
	}
	if was.Ended() {
		return plugin.Errorf(plugin.CodeInvalidInput, "call %s has ended (%s) and stays as it is", row.ID, was)
	}
	return c.showStatus(ctx, a, row.ID, "")
}

// showStatus prints the status of a call after a command changed it.
func (c *command) showStatus(ctx context.Context, a *app.App, id, next string) error {
	row, err := a.Ledger.Call(ctx, a.Config.Tenant, id)
	if err != nil {
		return err
	}
	if c.json {
		return c.print(viewOf(row))
	}
	state := string(viewOf(row).Status)
	if row.Cancelled && !row.State.Ended() {
		state += ", told to stop"
	}
	fmt.Fprintf(c.out, "%s %s%s\n", row.ID, state, inBrackets(row.Code))
	if next != "" {
		c.say("%s", next)
	}
	return nil
}
