package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/check"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

var errChecks = errors.New("some checks failed")

func (c *command) check() *cobra.Command {
	var o check.Options
	var against, junit string
	var secrets []string
	return c.command(spec{
		use:   "check PATH",
		short: "Check a plugin, or a tree of plugins, against its contract",
		long: `Check a plugin, or a tree of plugins, against its contract: the manifest, whether it starts,
whether its code is what the manifest says, whether its examples run, what the contract
asks of each kind of operation, and whether a new version keeps what earlier ones
promised. It runs in a host of its own that is thrown away. Operations with effects are
run with --effects only. What they may is then for the policy and the egress of
--config to say, if it is given; its principal makes the calls. Without it everything
is allowed but to reach this machine and its network.

The secrets that you have set are not in that host. An operation that cannot do without
one is not run, unless --secret gives it.

A tool of Event Mill is held to the acceptance checklist of its contract: layout,
manifest, schemas, examples, the ten contract tests, README and the rest, each failure
with the row of the requirements and its place.

A plugin of hooks is compiled, its register is run, and each of its handlers gets the
example payload of its event, and those in examples/EVENT.NAME.input.json.`,
		example: `  mortise check ./letters
  mortise check ./letters --effects --config ./check.yaml
  mortise check ./mailer --secret MAIL_KEY`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&against, "against", "", "the earlier version: a path, or NAME@VERSION of one that is registered; otherwise the highest registered one")
			cmd.Flags().BoolVar(&o.Effects, "effects", false, "run what may have effects too; they happen")
			cmd.Flags().StringVar(&junit, "junit", "", "write the results to this file as JUnit XML")
			cmd.Flags().StringArrayVar(&secrets, "secret", nil, "a secret that the checked plugins get: the value of the environment variable of that name (repeatable)")
		},
	}, func(ctx context.Context, q *ask) (err error) {
		if o.Secrets, err = c.secretsOf(secrets); err != nil {
			return err
		}
		o.Observe = nil
		if !c.json {
			o.Observe = func(r check.Result) { fmt.Fprintln(c.out, terminal.Safe(r.String())) }
		}
		earlier, closeHost, err := c.earlier(ctx, against, &o)
		if err != nil {
			return err
		}
		o.Earlier, o.Config, o.Notice = earlier, c.config, c.notice
		if cfg, _, err := setup.ReadConfig(c.home, c.config); err == nil {
			o.Sandbox = cfg.Sandbox
		}
		report, err := check.Run(ctx, q.args[0], o)
		if err = errors.Join(err, closeHost()); err != nil {
			return err
		}
		if junit != "" {
			if err := writeJUnit(junit, &report); err != nil {
				return err
			}
		}
		failed := report.Failed()
		if c.json {
			if err := c.print(map[string]any{"ok": failed == 0, "failed": failed, "results": report.Results}); err != nil {
				return err
			}
		} else {
			fmt.Fprintf(c.out, "%d checks, %d failed\n", len(report.Results), failed)
		}
		if failed > 0 {
			return reported{errChecks}
		}
		return nil
	})
}

// secretsOf returns the values of environment variables, by name. No value is ever an argument.
func (c *command) secretsOf(names []string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range names {
		value, found := os.LookupEnv(name)
		if !found || value == "" {
			return nil, usage{fmt.Errorf("--secret %s takes the value of the environment variable of that name, which is not set", name)}
		}
		if err := c.scrubber.Know(value); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, nil
}

// earlier returns what finds the versions that a plugin is held against, and
// what closes the host they are in. A path goes into the options. A data
// directory that was never used is left as it is.
func (c *command) earlier(ctx context.Context, against string, o *check.Options) (find check.Earlier, closeHost func() error, err error) {
	nothing := func() error { return nil }
	if against != "" {
		if _, err := os.Stat(against); err == nil {
			o.Against = against
			return nil, nothing, nil
		}
	}
	used, err := c.used()
	switch {
	case err != nil:
		return nil, nothing, err
	case !used && against != "":
		return nil, nothing, plugin.Errorf(plugin.CodeNotFound, "%s is no path, and nothing is registered in %s", against, c.home)
	case !used:
		return nil, nothing, nil
	}
	a, err := c.open(ctx)
	if err != nil {
		return nil, nothing, err
	}
	if against == "" {
		return check.Registered(a.Registry), a.Close, nil
	}
	if find, err = check.Named(ctx, a.Registry, against); err != nil {
		return nil, nothing, errors.Join(err, a.Close())
	}
	return find, a.Close, nil
}

// used reports whether anything can be registered yet: in the data directory,
// or in the database that the state is in instead.
func (c *command) used() (bool, error) {
	if c.home == "" {
		return false, nil
	}
	if database, err := c.place().FindDatabase(); err != nil || database != "" {
		return err == nil, err
	}
	return setup.HasDatabase(c.home), nil
}

func writeJUnit(path string, report *check.Report) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return report.WriteJUnit(file)
}
