package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/check"
)

func (c *command) test() *cobra.Command {
	var junit string
	return c.command(spec{
		use:     "test [DIR]",
		args:    cobra.MaximumNArgs(1),
		short:   "Run a plugin's own unit tests, with the SDK at hand",
		example: "  mortise test ./hello\n  mortise test ./hello --junit results.xml",
		long: `Run the unit tests of the plugin in a directory: test*.py and *_test.py by pytest, or by
unittest where pytest is not installed; *.test.ts and *.test.js by Node's test runner, or by
the vitest that the plugin has installed; the tests of a module in Go by go test. They are
looked for in the directory, and in its tests or test with what is below. The SDK is the
host's own, and so are shu_plugin_sdk and Event Mill's framework: there is nothing to install.`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&junit, "junit", "", "write the results to this file as JUnit XML")
		},
	}, func(ctx context.Context, q *ask) (err error) {
		dir := "."
		if len(q.args) == 1 {
			dir = q.args[0]
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return err
		}
		pkg, m, err := host.ReadPackage(dir)
		if err != nil {
			return err
		}
		results, out := junit, c.out
		if results != "" {
			if results, err = filepath.Abs(junit); err != nil {
				return err
			}
		}
		if c.json {
			out = io.Writer(c.errs)
			room, err := os.MkdirTemp("", "mortise-test-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(room)
			if results == "" {
				results = filepath.Join(room, "junit.xml")
			}
		}
		a, err := c.open(ctx)
		if err != nil {
			return err
		}
		defer closing(a, &err)
		argv, err := a.Interpreters.TestCommand(ctx, pkg, m, results)
		if err != nil {
			return err
		}
		failed := check.Tests(ctx, argv, dir, out, c.errs)
		if failed != nil && !errors.Is(failed, check.ErrTests) {
			return failed
		}
		if c.json {
			units, err := check.UnitsOf(results)
			if err == nil {
				err = c.print(map[string]any{"plugin": m.Name, "ok": failed == nil, "tests": units})
			}
			if err != nil {
				return err
			}
		}
		if failed != nil {
			return reported{failed}
		}
		return nil
	})
}
