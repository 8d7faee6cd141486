package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// maxPolicy is the longest file of policies that is put into the store.
const maxPolicy = 1 << 20

func (c *command) policyList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the policies in force: files, stored texts and rules of the configuration",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			a, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(a, &err)
			all, err := a.As(c.principal(a)).Policies().List(cmd.Context())
			if err != nil {
				return err
			}
			if c.json {
				return c.print(map[string]any{"documents": all, "version": a.Policy.Version()})
			}
			t := terminal.NewTable(c.out, "NAME", "SOURCE", "POLICIES", "BY", "AT")
			for _, d := range all {
				at := "-"
				if d.At != nil {
					at = terminal.Clock(*d.At)
				}
				t.Row(d.Name, d.Source, fmt.Sprint(d.Policies), terminal.Dash(d.By), at)
			}
			return t.Flush()
		},
	})
}

func (c *command) policyPut() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "put NAME FILE",
		Short: "Store a text of policies under a name, and put it into force",
		Long: `Store a text of policies under a name, and put it into force, in place of the text
that had the name. It is refused, by line and column, where the policies that would
come of it cannot be used together, or would keep you from changing them again; the
old ones stay in force then. Hosts that are running follow within seconds. It needs the
right to configure.`,
		Example: `  mortise policy put mail mail.cedar`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			text, err := readPolicy(args[1])
			if err != nil {
				return err
			}
			a, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(a, &err)
			count, err := a.As(c.principal(a)).Policies().Put(cmd.Context(), args[0], text)
			if err != nil {
				return err
			}
			if c.json {
				return c.print(map[string]any{"name": args[0], "policies": count, "version": a.Policy.Version()})
			}
			_, err = fmt.Fprintf(c.out, "%s is in force, with %d policies\n", args[0], count)
			return err
		},
	})
}

func readPolicy(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	case !info.Mode().IsRegular() || info.Size() > maxPolicy:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is no regular file of at most %d bytes", path, maxPolicy)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	}
	return text, nil
}

func (c *command) policyDelete() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "delete NAME",
		Short: "Take a stored text of policies out of force",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(a, &err)
			if err := a.As(c.principal(a)).Policies().Delete(cmd.Context(), args[0]); err != nil {
				return err
			}
			if c.json {
				return c.print(map[string]any{"name": args[0], "version": a.Policy.Version()})
			}
			_, err = fmt.Fprintf(c.out, "%s is not in force any more\n", args[0])
			return err
		},
	})
}
