package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) recovery() *cobra.Command {
	return group(spec{
		use:   "recovery",
		short: "After a restore: see what waits, and let effects happen again",
		long: `After a restore: see what waits, and let effects happen again.

A database that was put back does not know what was done since it was copied: what
waits in it may have been done, and a key that was used since is not known to have
been. So nothing with effects runs, and no plan, feed or queued call goes on, until
you have checked and confirm it.`,
	}, c.recoveryStatus(), c.recoveryConfirm())
}

func (c *command) recoveryStatus() *cobra.Command {
	return show(c, spec{use: "status", short: "Show whether the host is in recovery, and what would go on without it", example: "  mortise recovery status"},
		func(ctx context.Context, q *ask) (host.RecoveryStatus, error) { return q.Admin().Recovery(ctx) }, c.recovering)
}

func (c *command) recovering(s host.RecoveryStatus) error {
	if s.Recovery == nil {
		_, err := fmt.Fprintln(c.out, "the host is not in recovery")
		return err
	}
	fmt.Fprintf(c.out, "the host is in recovery: %s, %s\n\n", terminal.Safe(s.Recovery.Why), terminal.Clock(s.Recovery.Since))
	t := terminal.NewTable(c.out, "WAITS", "HOW MANY", "SEE")
	for _, row := range []struct {
		what string
		n    int
		see  string
	}{
		{"queued calls", s.Queued, "mortise calls list --state in_progress"},
		{"calls that wait for approval", s.Pending, "mortise approvals list"},
		{"calls whose outcome is unknown", s.Unknown, "mortise calls list --unknown"},
		{"plans that have not ended", s.Plans, "mortise plans list"},
		{"feeds that are not paused", s.Feeds, "mortise feeds list"},
	} {
		t.Row(row.what, fmt.Sprint(row.n), row.see)
	}
	return t.Flush()
}

func (c *command) recoveryConfirm() *cobra.Command {
	var reason string
	return c.change(spec{
		use:     "confirm --reason TEXT",
		short:   "Say that nothing will be done twice, and let effects happen again",
		example: `  mortise recovery confirm --reason "checked against the mail server"`,
		args:    cobra.NoArgs,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&reason, "reason", "", "how it is known what was done since the backup; it is on the record")
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		ended, err := q.Admin().ConfirmRecovery(ctx, reason)
		return done{value: map[string]any{"recovery": nil, "ended": ended}, said: "the recovery has ended; effects happen again"}, err
	})
}
