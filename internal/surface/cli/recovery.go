package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) recovery() *cobra.Command {
	return group(spec{
		use:   "recovery",
		short: "After a restore: review pending work, then allow effects again",
		long: `After a restore: review pending work, then allow effects again.

A database that was put back does not know what was done since it was copied: what
waits in it may have been done, and a key that was used since is not known to have
been. So nothing with effects runs, and no plan, feed or queued call goes on, until
you have checked and confirm it.`,
	}, c.recoveryStatus(), c.recoveryConfirm())
}

func (c *command) recoveryStatus() *cobra.Command {
	return show(c, spec{anywhere: true, use: "status", short: "Show whether the host is in recovery, and what is held back", example: "  mortise recovery status"},
		func(ctx context.Context, q *ask) (host.RecoveryStatus, error) { return q.Admin().Recovery(ctx) }, view.Recovery)
}

func (c *command) recoveryConfirm() *cobra.Command {
	var reason string
	return c.change(spec{
		anywhere: true,
		use:      "confirm --reason TEXT",
		short:    "End the recovery and allow effects again",
		example:  `  mortise recovery confirm --reason "checked against the mail server"`,
		args:     cobra.NoArgs,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&reason, "reason", "", "how it is known what was done since the backup; it is on the record")
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		ended, err := q.Admin().ConfirmRecovery(ctx, reason)
		return done{value: map[string]any{"recovery": nil, "ended": ended}, said: "the recovery has ended; effects happen again"}, err
	})
}
