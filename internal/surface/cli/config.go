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
	return group(spec{
		use:   "config",
		short: "Show and check the configuration",
		long: `Show and check the configuration: one file, mortise.yaml in the data directory or
where --config or MORTISE_CONFIG says. Every key is optional.`,
	}, c.command(spec{
		use: "show", short: "Show the configuration in force, defaults included", example: "  mortise config show", door: nowhere,
	}, func(context.Context, *ask) error { return c.showConfig() }), c.command(spec{
		use: "check [FILE]", short: "Check a configuration file", example: "  mortise config check ./mortise.yaml", door: nowhere,
	}, func(ctx context.Context, q *ask) error {
		if len(q.args) == 1 {
			c.config = q.args[0]
		}
		return c.checkConfig(ctx)
	}))
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
