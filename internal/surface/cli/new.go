package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
)

func (c *command) new() *cobra.Command {
	var lang, contract, dir string
	var only bool
	return c.command(spec{
		use:   "new NAME",
		short: "Write a new plugin from a template and link it",
		long: `Write a new plugin into a directory of its name, and register it with --dev, so
that it can be called at once and every change to its files counts at the next call.

A plugin of hooks is heard by the agents that it is enabled for: it may change or refuse
what they are about to do. The host runs it inside of itself; no Node is needed.`,
		example: `  mortise new hello --lang python
  mortise run hello --set name=Ada
  mortise new careful --lang hook
  mortise new letters --contract shu
  mortise check careful`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringVar(&lang, "lang", "", "language: python, ts, go, command for any other, or hook for what agents are to hear; python if empty, where the contract has it")
			flags.StringVar(&contract, "contract", "mortise", "what it is written to: mortise, kernel, shu, eventmill, openhermit or runtime")
			flags.StringVar(&dir, "dir", "", "where to write it; ./NAME if empty")
			flags.BoolVar(&only, "no-register", false, "write the files and nothing else")
			_ = cmd.RegisterFlagCompletionFunc("lang", cobra.FixedCompletions(host.PluginLanguages, cobra.ShellCompDirectiveNoFileComp))
		},
	}, func(ctx context.Context, q *ask) error {
		name := q.args[0]
		if dir == "" {
			dir = filepath.Join(".", name)
		}
		template, err := host.PluginTemplate(contract, lang)
		if err != nil {
			return err
		}
		files, err := host.NewPlugin(dir, name, template)
		var unbuilt *host.NotBuilt
		switch {
		case errors.As(err, &unbuilt):
			c.say("mortise: %s\nrun: (cd %s && %s)", unbuilt, quoted(unbuilt.Dir), host.BuildGo)
			only = true
		case err != nil:
			return err
		}
		if !only {
			a, err := c.open(ctx)
			if err != nil {
				return fmt.Errorf("%s was written and not registered: %w", dir, err)
			}
			p := c.errs.Begin("linking " + dir)
			_, err = a.As(a.Principal).Plugins().Register(ctx, dir, host.RegisterOptions{Dev: true, Enable: true})
			p.End()
			if err = errors.Join(err, a.Close()); err != nil {
				return fmt.Errorf("%s was written and could not be registered: %w", dir, err)
			}
		}
		if c.json {
			return c.print(map[string]any{"name": name, "dir": dir, "lang": template, "contract": contract, "files": files, "registered": !only})
		}
		for _, file := range files {
			fmt.Fprintln(c.out, filepath.Join(dir, file))
		}
		switch at := quoted(dir); {
		case only:
			c.say("next: mortise plugins register --dev %s", at)
		case template == "hook":
			c.say("next: mortise check %s, and mortise plugins enable %s --agent AGENT", at, name)
		default:
			c.say("next: mortise run %s, and mortise check %s", name, at)
		}
		return nil
	})
}
