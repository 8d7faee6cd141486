package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
)

func (c *command) test() *cobra.Command {
	return &cobra.Command{
		Use:     "test [DIR]",
		Short:   "Run a plugin's own unit tests, with the SDK at hand",
		Example: "  mortise test ./hello",
		Long: `Run the unit tests of the plugin in a directory: test*.py by unittest, *.test.ts and
*.test.js by Node's test runner, in the directory and its tests or test folder. The
SDK is the host's own, so there is nothing to install.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if dir, err = filepath.Abs(dir); err != nil {
				return err
			}
			pkg, m, err := host.ReadPackage(dir)
			if err != nil {
				return err
			}
			a, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(a, &err)
			argv, err := a.Interpreters.TestCommand(cmd.Context(), pkg, m)
			if err != nil {
				return err
			}
			tests := exec.CommandContext(cmd.Context(), argv[0], argv[1:]...)
			tests.Dir, tests.Stdout, tests.Stderr = dir, c.out, c.errs
			err = tests.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return reported{fmt.Errorf("the tests failed")}
			}
			return err
		},
	}
}
