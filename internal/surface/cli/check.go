package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/check"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

var errChecks = errors.New("some checks failed")

// databaseFile is in every data directory that was ever used, unless its state
// is in a database elsewhere.
const databaseFile = "mortise.db"

func (c *command) check() *cobra.Command {
	var o check.Options
	var against, junit string
	return c.command(spec{
		use:   "check PATH",
		short: "Judge a plugin, or a tree of them, by its contract",
		long: `Judge a plugin, or a tree of them, by its contract: the manifest, whether it starts,
whether its code is what the manifest says, whether its examples run, what the contract
asks of each kind of operation, and whether a new version keeps what earlier ones
promised. It runs in a host of its own that is thrown away. Operations with effects are
run with --effects only. What they may is then for the policy and the egress of
--config to say, if it is given; its principal makes the calls. Without it everything
is allowed but to reach this machine and its network.

A tool of Event Mill is held to the acceptance checklist of its contract: layout,
manifest, schemas, examples, the ten contract tests, README and the rest, each failure
with the row of the requirements and its place.

A plugin of hooks is compiled, its register is run, and each of its handlers gets the
example payload of its event, and those in examples/EVENT.NAME.input.json.`,
		example: `  mortise check ./letters
  mortise check ./letters --effects --config ./check.yaml`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&against, "against", "", "the earlier version: a path, or NAME@VERSION of one that is registered; otherwise the highest registered one")
			cmd.Flags().BoolVar(&o.Effects, "effects", false, "run what may have effects too; they happen")
			cmd.Flags().StringVar(&junit, "junit", "", "write the results to this file as JUnit XML")
		},
	}, func(ctx context.Context, q *ask) (err error) {
		o.Observe = nil
		if !c.json {
			o.Observe = c.showCheck
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

// earlier returns what finds the versions that a plugin is held against, and
// what closes the host they are in. A path goes into the options. A data
// directory that was never used is left as it is.
func (c *command) earlier(ctx context.Context, against string, o *check.Options) (find func(context.Context, *plugin.Manifest, string) ([]*plugin.Manifest, error), closeHost func() error, err error) {
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
		return func(ctx context.Context, m *plugin.Manifest, digest string) ([]*plugin.Manifest, error) {
			return predecessors(ctx, a, m, digest)
		}, a.Close, nil
	}
	named, err := a.Registry.Show(ctx, against)
	if err != nil {
		return nil, nothing, errors.Join(err, a.Close())
	}
	return func(_ context.Context, m *plugin.Manifest, _ string) ([]*plugin.Manifest, error) {
		if m.Name != named.Name {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "--against names %s@%s, which is another plugin", named.Name, named.Version)
		}
		return []*plugin.Manifest{named.Manifest}, nil
	}, a.Close, nil
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
	_, err := os.Stat(filepath.Join(c.home, databaseFile))
	return err == nil, nil
}

// predecessors returns the highest registered version that is lower, and the
// same version where it stands for other files and is not linked.
func predecessors(ctx context.Context, a *app.App, m *plugin.Manifest, digest string) ([]*plugin.Manifest, error) {
	own, err := semver.NewVersion(m.Version)
	if err != nil {
		return nil, err
	}
	shown, err := a.Registry.Show(ctx, m.Name)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var found []*plugin.Manifest
	for _, version := range shown.Versions { // the highest first
		v, err := semver.NewVersion(version)
		if err != nil || own.LessThan(v) {
			continue
		}
		one, err := a.Registry.Show(ctx, m.Name+"@"+version)
		switch {
		case err != nil:
			return nil, err
		case own.Equal(v) && (one.Dev || one.Digest == digest):
			continue
		}
		found = append(found, one.Manifest)
		if v.LessThan(own) {
			break
		}
	}
	return found, nil
}

func writeJUnit(path string, report *check.Report) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return report.WriteJUnit(file)
}

func (c *command) showCheck(r check.Result) {
	line := fmt.Sprintf("%-7s  %s: %s", r.Outcome, r.Plugin, r.Check)
	detail, more, _ := strings.Cut(r.Detail, "\n")
	if detail != "" {
		line += ": " + detail
	}
	if r.Row != "" && r.Outcome == check.Fail {
		line += " (" + r.Row + ")"
	}
	if more != "" {
		line += "\n" + more
	}
	fmt.Fprintln(c.out, terminal.Safe(line))
}
