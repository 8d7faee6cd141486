package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) recovery() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recovery",
		Short: "After a restore: see what waits, and let effects happen again",
		Long: `After a restore: see what waits, and let effects happen again.

A database that was put back does not know what was done since it was copied: what
waits in it may have been done, and a key that was used since is not known to have
been. So nothing with effects runs, and no plan, feed or queued call goes on, until
you have checked and confirm it.`,
	}
	cmd.AddCommand(c.recoveryStatus(), c.recoveryConfirm())
	return cmd
}

func (c *command) recoveryStatus() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "status",
		Short: "Show whether the host is in recovery, and what would go on without it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			a, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(a, &err)
			s, err := a.As(a.Principal).Admin().Recovery(cmd.Context())
			if err != nil {
				return err
			}
			return c.recovering(s)
		},
	})
}

func (c *command) recovering(s host.RecoveryStatus) error {
	if c.json {
		return c.print(s)
	}
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
		{"queued calls", s.Queued, "mortise calls list --state queued"},
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
	cmd := &cobra.Command{
		Use:   "confirm --reason TEXT",
		Short: "Say that nothing will be done twice, and let effects happen again",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			a, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(a, &err)
			ended, err := a.As(c.principal(a)).Admin().ConfirmRecovery(cmd.Context(), reason)
			if err != nil {
				return err
			}
			if c.json {
				return c.print(map[string]any{"recovery": nil, "ended": ended})
			}
			_, err = fmt.Fprintln(c.out, "the recovery has ended; effects happen again")
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "how it is known what was done since the backup; it is on the record")
	return c.withJSON(cmd)
}
