package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host/setup"
)

func (c *command) configuration() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and check the configuration",
		Long: `Show and check the configuration: one file, mortise.yaml in the data directory or
where --config or MORTISE_CONFIG says. Every key is optional.`,
	}
	cmd.AddCommand(
		c.withJSON(&cobra.Command{
			Use:     "show",
			Short:   "Show the configuration in force, defaults included",
			Example: "  mortise config show",
			Args:    cobra.NoArgs,
			RunE:    func(*cobra.Command, []string) error { return c.showConfig() },
		}),
		c.withJSON(&cobra.Command{
			Use:     "check [FILE]",
			Short:   "Say whether a configuration file can be used",
			Example: "  mortise config check ./mortise.yaml",
			Args:    cobra.MaximumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) == 1 {
					c.config = args[0]
				}
				return c.checkConfig(cmd.Context())
			},
		}),
	)
	return cmd
}

func (c *command) showConfig() error {
	conf, path, err := setup.ReadConfig(c.home, c.config)
	if err != nil {
		return usage{err}
	}
	if conf.Database, err = setup.ChooseDatabase(c.databaseURL(), conf.Database); err != nil {
		return err
	}
	if c.json {
		return c.print(map[string]any{"file": path, "home": c.home, "config": conf})
	}
	from := path
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		from = "defaults; there is no " + path
	}
	fmt.Fprintf(c.out, "# %s\n", from)
	text, err := conf.YAML()
	if err != nil {
		return err
	}
	_, err = c.out.Write(text)
	return err
}

func (c *command) checkConfig(ctx context.Context) error {
	conf, path, err := setup.ReadConfig(c.home, c.config)
	if err != nil {
		return usage{err}
	}
	if _, err := setup.ConfiguredPolicies(conf, path, c.stored(ctx)); err != nil {
		return usage{fmt.Errorf("%s: the policies cannot be used: %w", path, err)}
	}
	if _, statErr := os.Stat(path); statErr != nil {
		if c.json {
			return c.print(map[string]any{"ok": true, "file": nil})
		}
		fmt.Fprintf(c.out, "there is no %s; the defaults are in force\n", path)
		return nil
	}
	if c.json {
		return c.print(map[string]any{"ok": true, "file": path})
	}
	fmt.Fprintf(c.out, "%s can be used\n", path)
	return nil
}
