package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) quotas() *cobra.Command {
	return show(c, spec{
		use:   "quotas",
		short: "Show your quotas and their use",
		long: `Show your quotas and their use.

Quotas are configured under quotas in mortise.yaml. Days and months are counted for
all hosts on the database. What runs at once, and the calls of a minute, each host
counts for itself: the figures of this process.`,
		example: `  mortise quotas
  mortise quotas --json`,
	}, func(ctx context.Context, q *ask) ([]host.QuotaUse, error) {
		return q.app.As(q.app.Principal).Quotas(ctx)
	}, func(w io.Writer, uses []host.QuotaUse) error { return view.Quotas(w, c.errs, uses) })
}
