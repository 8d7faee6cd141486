package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/service/reference"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) reference() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reference",
		Short: "Manage the data that plugins look things up in",
		Long: `Manage the data that plugins look things up in: one file for each key, in the
directory reference of the data directory. Plugins do without what is not there.

An excerpt of MITRE ATT&CK, of the matrices enterprise and ics, is there as
mitre_techniques until another is added.`,
	}
	cmd.AddCommand(c.referenceList(), c.referenceAdd(), c.referenceRemove(), c.referenceMitre())
	return cmd
}

func (c *command) referenceList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the keys there are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.referring(cmd, func(a *app.App) error {
				keys, err := a.As(a.Principal).References().List()
				if err != nil {
					return err
				}
				return c.showKeys(keys, true)
			})
		},
	})
}

func (c *command) referenceAdd() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "add KEY FILE",
		Short: "Put a file in the place of a key's data",
		Long: `Put a file in the place of a key's data. A file that ends in .json is a value; .csv
and .txt, and everything else, is text.`,
		Example: `  mortise reference add known_hosts hosts.csv`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.referring(cmd, func(a *app.App) error {
				if err := c.refuseOwn(args[1]); err != nil {
					return err
				}
				key, err := a.As(a.Principal).References().Add(cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				return c.showKeys([]reference.Key{key}, false)
			})
		},
	})
}

func (c *command) referenceRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove KEY",
		Short: "Take a key's data away",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.referring(cmd, func(a *app.App) error { return a.As(a.Principal).References().Remove(cmd.Context(), args[0]) })
		},
	}
}

func (c *command) referenceMitre() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "mitre FILE...",
		Short: "Make the table of techniques from bundles of MITRE ATT&CK",
		Long: `Make the table of techniques from bundles of MITRE ATT&CK, as MITRE publishes them in
STIX 2 (enterprise-attack.json, mobile-attack.json, ics-attack.json). What was revoked
or deprecated is left out.

Plugins find them under mitre_techniques, in the place of the excerpt that is there
before: {"T1566.001": {name, tactics, url, matrix}}.`,
		Example: `  mortise reference mitre enterprise-attack.json`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.referring(cmd, func(a *app.App) error {
				key, counts, err := a.As(a.Principal).References().AddMitre(cmd.Context(), args...)
				if err != nil {
					return err
				}
				for _, matrix := range slices.Sorted(maps.Keys(counts)) {
					c.say("%d techniques of the matrix %s", counts[matrix], matrix)
				}
				return c.showKeys([]reference.Key{key}, false)
			})
		},
	})
}

// referring opens the host and does something with its reference data.
func (c *command) referring(cmd *cobra.Command, do func(*app.App) error) (err error) {
	a, err := c.open(cmd.Context())
	if err != nil {
		return err
	}
	defer closing(a, &err)
	return do(a)
}

// showKeys prints keys.
func (c *command) showKeys(keys []reference.Key, all bool) error {
	if c.json {
		return c.print(map[string]any{"reference": keys})
	}
	if all && len(keys) == 0 {
		c.say("there is no reference data; 'mortise reference add KEY FILE' puts some there, and 'mortise reference mitre FILE' the techniques of ATT&CK")
		return nil
	}
	t := terminal.NewTable(c.out, "KEY", "FORM", "BYTES", "CHANGED")
	for _, key := range keys {
		t.Row(key.Key, key.Form, fmt.Sprint(key.Size), terminal.Clock(key.UpdatedAt))
	}
	return t.Flush()
}
