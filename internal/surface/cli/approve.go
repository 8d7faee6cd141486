package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) pluginsDiff() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "diff NAME[@VERSION]",
		Short: "Show what is different in a plugin that is held",
		Long: `Show what is different in a plugin that is held, compared with the version that
was approved: what it may do, what it says, its schemas, its files. Invisible
characters are written out. None of its code runs.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(a, &err)
			review, err := a.As(c.principal(a)).Plugins().Review(cmd.Context(), args[0], false)
			if err != nil {
				return withNext(err)
			}
			if c.json {
				return c.print(review)
			}
			return showReview(c.out, review)
		},
	})
}

func (c *command) pluginsApprove() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve NAME[@VERSION]",
		Short: "Let a plugin be called that is held because it changed",
		Long: `Let a plugin be called that is held because it changed. The difference to what was
approved before is shown first. Only what was shown is approved: if anything is
another by then, nothing happens. Where the manifest leaves operations or schemas
open, the code is asked for them once you have said yes, and what it adds is shown
and asked about too.`,
		Example: `  mortise plugins approve mail
  mortise plugins approve mail@1.2.0 --yes --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !yes && !terminal.Is(c.in) {
				return usage{errors.New("approving is asked about on a terminal; --yes goes without: look at the difference with 'mortise plugins diff' first")}
			}
			a, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(a, &err)
			review, err := c.reviewed(cmd.Context(), a, args[0], yes)
			if err != nil {
				return withNext(err)
			}
			info, err := a.As(c.principal(a)).Plugins().Approve(cmd.Context(), review)
			if err != nil {
				return withNext(err)
			}
			if c.json {
				return c.print(struct {
					Plugin registry.Info `json:"plugin"`
					registry.Review
				}{info, review})
			}
			fmt.Fprintf(c.out, "%s %s is %s\n", terminal.Safe(info.Name), terminal.Safe(info.Version), info.State)
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "approve without asking")
	return c.withJSON(cmd)
}

// reviewed shows what is different and asks, unless the answer is yes already.
// Nothing of the plugin runs before the first yes.
func (c *command) reviewed(ctx context.Context, a *app.App, ref string, yes bool) (registry.Review, error) {
	var out io.Writer = c.out
	if c.json {
		out = c.errs // the object alone goes to standard output
	}
	answers := bufio.NewReader(io.LimitReader(c.in, 1<<16))
	agree := func(review registry.Review) error {
		if !c.json || !yes {
			if err := showReview(out, review); err != nil {
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
	first, err := a.As(c.principal(a)).Plugins().Review(ctx, ref, false)
	if err != nil {
		return first, err
	}
	if err := agree(first); err != nil || !first.Open {
		return first, err
	}
	// The version is named: another one may have come to wait meanwhile.
	second, err := a.As(c.principal(a)).Plugins().Review(ctx, first.Name+"@"+first.Version, true)
	if err != nil || second.Digest == first.Digest && second.Hash == first.Hash {
		return second, err
	}
	fmt.Fprint(out, "\nWith what its code says, the difference is this:\n")
	return second, agree(second)
}

// showReview writes a review for a person.
func showReview(w io.Writer, r registry.Review) error {
	before := "nothing that is still here"
	if r.Approved != nil {
		before = fmt.Sprintf("%s, which is approved (%s)", r.Approved.Version, r.Approved.Digest)
	}
	fmt.Fprintf(w, "%s %s (%s)\ncompared with %s\n", terminal.Safe(r.Name), terminal.Safe(r.Version), r.Digest, terminal.Safe(before))
	if r.Open {
		fmt.Fprintf(w, "Its manifest leaves operations or schemas open; approving asks its code for them.\n")
	}
	return r.Difference.Write(w)
}

func (c *command) pluginsRollback() *cobra.Command {
	return c.switching("rollback NAME", "Go back to the approved version below the one in use", func(cmd *cobra.Command, a *app.App, ref string) ([]registry.Info, error) {
		left, back, err := a.As(c.principal(a)).Plugins().Rollback(cmd.Context(), ref)
		return []registry.Info{left, back}, err
	})
}
