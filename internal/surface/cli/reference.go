package cli

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) reference() *cobra.Command {
	return group(spec{
		use:   "reference",
		short: "Manage reference data for plugins",
		long: `Manage reference data for plugins: one file for each key, in the
directory reference of the data directory. Plugins do without what is not there.

An excerpt of MITRE ATT&CK, of the matrices enterprise and ics, is there as
mitre_techniques until the whole is put in its place with update.`,
	}, c.referenceList(), c.referenceAdd(), c.referenceRemove(), c.referenceUpdate())
}

func (c *command) referenceList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List reference data", example: "  mortise reference list"}, view.References,
		func(_ context.Context, q *ask) ([]host.ReferenceKey, error) { return q.References().List() })
}

func (c *command) referenceAdd() *cobra.Command {
	return list(c, spec{
		anywhere: true,
		use:      "add KEY FILE",
		short:    "Store a file as reference data under a key",
		long: `Store a file as reference data under a key. A file that ends in .json is a value; .csv
and .txt, and everything else, is text.`,
		example: `  mortise reference add known_hosts hosts.csv`,
	}, view.References, func(ctx context.Context, q *ask) ([]host.ReferenceKey, error) {
		if err := c.refuseOwn(q.args[1]); err != nil {
			return nil, err
		}
		key, err := q.References().Add(ctx, q.args[0], q.args[1])
		return []host.ReferenceKey{key}, err
	})
}

func (c *command) referenceRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove KEY",
		Short:   "Remove reference data",
		Example: "  mortise reference remove known_hosts",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reach(cmd.Context(), inHost, func(q *ask) error { return q.References().Remove(cmd.Context(), args[0]) })
		},
	}
}

func (c *command) referenceUpdate() *cobra.Command {
	var undo bool
	return list(c, spec{
		anywhere: true,
		use:      "update [FILE...]",
		short:    "Update the MITRE ATT&CK techniques from bundle files",
		long: `Update the MITRE ATT&CK techniques from bundle files, as MITRE publishes them in
STIX 2.1 (enterprise-attack.json, mobile-attack.json, ics-attack.json): name all that
are to be in it. What was revoked or deprecated is left out. The table before is kept,
and --undo puts it back.

Plugins find them under mitre_techniques, in the place of the excerpt that is there
before: {"T1566.001": {name, tactics, url, matrix, version}}.`,
		example: `  mortise reference update enterprise-attack.json mobile-attack.json ics-attack.json`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&undo, "undo", false, "put back the table that was there before")
		},
		check: func(args []string) error {
			if undo == (len(args) > 0) {
				return usage{errors.New("name the bundles, or give --undo")}
			}
			return nil
		},
	}, view.References, func(ctx context.Context, q *ask) ([]host.ReferenceKey, error) {
		if undo {
			key, err := q.References().Put(ctx, host.MitreTechniques, host.ReferencePrevious, nil)
			return []host.ReferenceKey{key}, err
		}
		key, counts, err := q.References().AddMitre(ctx, q.args...)
		if err == nil {
			for _, matrix := range slices.Sorted(maps.Keys(counts)) {
				c.say("%d techniques of the matrix %s", counts[matrix], matrix)
			}
		}
		return []host.ReferenceKey{key}, err
	})
}
