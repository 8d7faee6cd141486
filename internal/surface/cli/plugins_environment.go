package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) pluginsEnvironment() *cobra.Command {
	var from string
	var away bool
	return c.change(spec{
		anywhere: true,
		use:      "environment NAME[@VERSION]",
		short:    "Install the Python packages that a plugin requires, for it alone",
		long: `Install the wheels that the requirements.txt of a Python plugin names, for that plugin
alone: each line one version with its hashes. They come from a directory, or from where
plugins.environments in mortise.yaml says, which must allow it. No code is run for it.
What is installed is a part of the package from then on: a plugin that was approved is
held until 'mortise plugins approve', and what was approved can be called meanwhile.`,
		example: `  mortise plugins environment gmail_digest
  mortise plugins environment gmail_digest --from ./wheels
  mortise plugins environment gmail_digest --remove`,
		complete: c.completePlugins,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&from, "from", "", "a directory of wheels; nothing is fetched")
			cmd.Flags().BoolVar(&away, "remove", false, "take away what is installed")
		},
		check: func([]string) (err error) {
			if from != "" && away {
				return usage{errors.New("--from and --remove: only one of them")}
			}
			if from != "" {
				from, err = filepath.Abs(from)
			}
			return err
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		var one host.RegisteredPlugin
		err := c.during("installing for "+q.args[0], func() (err error) {
			if away {
				one, err = q.Plugins().RemoveEnvironment(ctx, q.args[0])
			} else {
				one, err = q.Plugins().Environment(ctx, q.args[0], from)
			}
			return err
		})
		return done{value: map[string]any{"plugin": one.Info, "unchanged": one.Unchanged}, said: view.Furnished(one)}, view.WithNext(err)
	})
}
