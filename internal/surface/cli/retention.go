package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) retention() *cobra.Command {
	return group(spec{
		use:   "retention",
		short: "Show and apply the periods after which data is removed",
		long: `Show and apply the periods after which data is removed.

The periods are under retention in mortise.yaml; without one all is kept. A host that
serves applies them by itself. Entries of the ledger are never removed, nor is a call
that waits, runs or is unknown.`,
	}, c.retentionShow(), c.retentionApply(), c.retentionErasures())
}

func (c *command) retentionShow() *cobra.Command {
	return show(c, spec{anywhere: true, use: "show", short: "Show each period, and what it would remove now", example: "  mortise retention show"},
		func(ctx context.Context, q *ask) ([]host.RetentionState, error) { return q.Admin().Retention(ctx) }, view.Retention)
}

func (c *command) retentionApply() *cobra.Command {
	var dry bool
	s := spec{
		anywhere: true, use: "apply", short: "Remove data that is older than its period now", example: "  mortise retention apply --dry-run", args: cobra.NoArgs,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be removed, and remove nothing")
		},
	}
	return show(c, s, func(ctx context.Context, q *ask) ([]host.RetentionState, error) {
		if dry {
			return q.Admin().Retention(ctx)
		}
		return q.Admin().ApplyRetention(ctx)
	}, view.Retention)
}

func (c *command) retentionErasures() *cobra.Command {
	return show(c, spec{anywhere: true, use: "erasures", short: "List erasures and their progress", example: "  mortise retention erasures"},
		func(ctx context.Context, q *ask) ([]host.Erasure, error) { return q.Admin().Erasures(ctx) }, view.Erasures)
}

func (c *command) erase() *cobra.Command {
	var dry bool
	s := spec{
		anywhere: true,
		use:      "erase PRINCIPAL",
		short:    "Erase the data of a person",
		long: `Erase the data of a person: tokens, sign-ins and links first, so that they make no
more calls; then sessions, artifacts, conversations, stored values, secrets, accounts,
knowledge, feeds, and the inputs and answers of their calls. Calls of theirs that wait are
cancelled. Entries of the ledger stay: they have hashes, and not what was hashed.

It goes on until it is done, also after a crash; a call whose outcome is unknown has to
be settled before. 'mortise retention erasures' shows how far it is. What older backups
have is not erased there.`,
		example: `  mortise erase ada --dry-run
  mortise erase ada`,
		args: cobra.ExactArgs(1),
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be removed, and remove nothing")
		},
	}
	return show(c, s, func(ctx context.Context, q *ask) (host.Erasure, error) {
		return q.Admin().Erase(ctx, q.args[0], dry)
	}, view.Erasure)
}
