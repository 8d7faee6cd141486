package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) pluginsDiff() *cobra.Command {
	return show(c, spec{
		anywhere: true,
		use:      "diff NAME[@VERSION]",
		short:    "Show the changes in a quarantined plugin",
		long: `Show the changes in a quarantined plugin, compared with the version that
was approved: what it may do, what it says, its schemas, its files. Invisible
characters are written out. None of its code runs.`,
		example:  "  mortise plugins diff mail",
		complete: c.completePlugins,
	}, func(ctx context.Context, q *ask) (host.PluginReview, error) {
		review, err := q.Plugins().Review(ctx, q.args[0], false)
		return review, view.WithNext(err)
	}, view.Review)
}

func (c *command) pluginsApprove() *cobra.Command {
	var yes bool
	return c.change(spec{
		anywhere: true,
		use:      "approve NAME[@VERSION]",
		short:    "Approve a quarantined plugin",
		long: `Approve a quarantined plugin. The difference to what was
approved before is shown first. Only what was shown is approved: if anything is
another by then, nothing happens. Where the manifest leaves operations or schemas
open, the code is asked for them once you have said yes, and what it adds is shown
and asked about too.`,
		example: `  mortise plugins approve mail
  mortise plugins approve mail@1.2.0 --yes --json`,
		complete: c.completePlugins,
		flags:    func(cmd *cobra.Command) { cmd.Flags().BoolVarP(&yes, "yes", "y", false, "approve without asking") },
		check: func([]string) error {
			if !yes && !terminal.Is(c.in) {
				return usage{errors.New("approving is asked about on a terminal; --yes goes without: look at the difference with 'mortise plugins diff' first")}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		review, err := c.reviewed(ctx, q, q.args[0], yes)
		if err != nil {
			return done{}, view.WithNext(err)
		}
		info, err := q.Plugins().Approve(ctx, review)
		value := struct {
			Plugin host.PluginInfo `json:"plugin"`
			host.PluginReview
		}{info, review}
		return done{value: value, said: view.PluginStates(info)}, view.WithNext(err)
	})
}

// reviewed shows what is different and asks, unless the answer is yes already.
// Nothing of the plugin runs before the first yes.
func (c *command) reviewed(ctx context.Context, q *ask, ref string, yes bool) (host.PluginReview, error) {
	var out io.Writer = c.out
	if c.json {
		out = c.errs // the object alone goes to standard output
	}
	answers := bufio.NewReader(io.LimitReader(c.in, 1<<16))
	agree := func(review host.PluginReview) error {
		if !c.json || !yes {
			if err := view.Review(out, review); err != nil {
				return err
			}
		}
		if yes {
			return nil
		}
		name := review.Name + "@" + review.Version
		if yes, err := terminal.Confirm(ctx, answers, out, "Approve "+name+"?"); err != nil || yes {
			return err
		}
		return plugin.Errorf(plugin.CodeApprovalDenied, "%s stays held", name)
	}
	first, err := q.Plugins().Review(ctx, ref, false)
	if err != nil {
		return first, err
	}
	if err := agree(first); err != nil || !first.Open {
		return first, err
	}
	// The version is named: another one may have come to wait meanwhile.
	second, err := q.Plugins().Review(ctx, first.Name+"@"+first.Version, true)
	if err != nil || second.Digest == first.Digest && second.Hash == first.Hash {
		return second, err
	}
	fmt.Fprint(out, "\nWith what its code says, the difference is this:\n")
	return second, agree(second)
}
