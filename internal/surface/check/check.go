// Package check judges plugins by their own contract, by running them for real
// in a host that is thrown away afterwards.
package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/eventmill"
	"github.com/mortise-dev/mortise/internal/catalog/contract/shu"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// Options say how plugins are checked.
type Options struct {
	Effects bool              // run what may have effects too; they happen
	Config  string            // a configuration whose policy and egress hold for them; without one all is allowed, and this machine is out of reach
	Against string            // earlier versions: a plugin's path, or a tree; none where it is empty
	Sandbox string            // what plugins may start without, as mortise.yaml says it; the default where it is empty
	Secrets map[string]string // values of secrets that the checked plugins get, by name
	Observe func(Result)      // hears of each result as it comes; it may be nil

	// Notice is told once if plugins start behind fewer walls than all. It may be nil.
	Notice func(text string)

	// Earlier returns the versions of a plugin that this one is held against,
	// where Against is empty. It may be nil.
	Earlier Earlier
}

// Run checks the plugin at path, or every plugin of the tree under it. The
// error is about the checking, not the plugins.
func Run(ctx context.Context, path string, o Options) (_ Report, err error) {
	if !o.Effects {
		o.Config = ""
	}
	h, err := openHost(ctx, o)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	c := &checker{host: h, options: o}
	if o.Against != "" {
		if c.options.Earlier, err = against(ctx, h, o.Against); err != nil {
			return Report{}, err
		}
	}
	report, err := h.Registry.Register(ctx, path, registry.RegisterOptions{Dev: true, Enable: true})
	c.named = report.Named
	for _, f := range report.Failed {
		switch {
		case (eventmill.Contract{}).Holds(f.Path):
			err = c.eventMill(ctx, f.Path, nil, f.Err)
		case shu.Holds(f.Path):
			err = c.shu(ctx, f.Path, nil, f.Err)
		case isScript(f.Path):
			c.unloaded(f.Path, f.Path, f.Err)
			continue
		default:
			c.manifest(f.Path, f.Err)
			continue
		}
		if err != nil {
			return c.report, err
		}
	}
	for _, r := range report.Registered {
		if (eventmill.Contract{}).Holds(r.Path) {
			if err := c.eventMill(ctx, r.Path, &r, r.NotEnabled); err != nil {
				return c.report, err
			}
			continue
		}
		if shu.Holds(r.Path) {
			if err := c.shu(ctx, r.Path, &r, r.NotEnabled); err != nil {
				return c.report, err
			}
			continue
		}
		if err := c.plugin(ctx, r); err != nil {
			return c.report, err
		}
	}
	if len(report.Failed)+len(report.Registered) == 0 && err != nil {
		return c.report, err
	}
	return c.report, nil
}

// A checker makes the checks of one run.
type checker struct {
	host    *host
	options Options
	report  Report
	named   string // the directory that is checked; "" where it could not be read
}

func (c *checker) add(name, check string, outcome Outcome, format string, args ...any) {
	c.result(Result{name, check, outcome, fmt.Sprintf(format, args...), rows[check]})
}

func (c *checker) result(r Result) {
	c.report.Results = append(c.report.Results, r)
	if c.options.Observe != nil {
		c.options.Observe(r)
	}
}

// judge adds a result that passes where err is nil.
func (c *checker) judge(name, check string, err error) bool {
	if err != nil {
		c.add(name, check, Fail, "%s", messageOf(err))
		return false
	}
	c.add(name, check, Pass, "")
	return true
}

func messageOf(err error) string {
	if e := plugin.AsError(err); e.Code != plugin.CodeInternal {
		return e.Error()
	}
	return err.Error()
}

// manifest adds a failure for each place where a manifest is wrong.
func (c *checker) manifest(path string, err error) {
	var problems contract.Problems
	if !errors.As(err, &problems) {
		check := "manifest"
		if plugin.CodeOf(err) != plugin.CodeInvalidInput { // its code was asked for what the manifest leaves open
			check = starts
		}
		c.add(path, check, Fail, "%s", messageOf(err))
		return
	}
	for _, p := range problems {
		check := "manifest"
		if p.File == "code" {
			check = honest
		}
		c.add(path, check, Fail, "%s", p)
	}
}

// plugin makes all checks of one plugin whose manifest can be read.
func (c *checker) plugin(ctx context.Context, r registry.Registered) error {
	c.add(r.Name, "manifest", Pass, "")
	if reading, err := contract.Inspect(r.Path); err == nil {
		for _, note := range reading.Notes {
			c.add(r.Name, "manifest", Warn, "%s", note)
		}
	}
	if r.NotEnabled != nil {
		if isScript(r.Path) {
			c.unloaded(r.Name, r.Path, r.NotEnabled)
			return nil
		}
		c.stopped(r.Path, r.Name, r.NotEnabled)
		return nil
	}
	shown, err := c.host.Registry.Show(ctx, r.Name+"@"+r.Version)
	if !c.judge(r.Name, starts, err) {
		return nil
	}
	if shown.Manifest.Runner.Kind == "script" {
		err = c.script(ctx, shown)
	} else {
		c.honest(ctx, shown)
		err = c.hooks(ctx, shown)
	}
	if err != nil {
		return err
	}
	for _, op := range shown.Manifest.Operations {
		if err := c.operation(ctx, shown, op); err != nil {
			return err
		}
	}
	if err := c.unknown(ctx, shown); err != nil {
		return err
	}
	return c.compatible(ctx, shown)
}

// stopped adds that a plugin does not start: a failure, unless it lacks a secret.
func (c *checker) stopped(path, name string, err error) {
	if reading, _ := contract.Inspect(path); reading != nil && reading.Manifest != nil && plugin.CodeOf(err) == plugin.CodeMissingSecrets {
		if names := c.missing(reading.Manifest, nil); len(names) > 0 {
			c.add(name, starts, Skip, "%s", unset(names, err))
			return
		}
	}
	c.add(name, starts, Fail, "%s", messageOf(err))
}

// honest checks that the code is what the manifest says. The host asks it only
// for what the manifest leaves open; here it is asked in any case.
func (c *checker) honest(ctx context.Context, s registry.Shown) {
	if s.Manifest.Runner.Kind == "webhook" {
		return // its code is remote, and a check must not call it
	}
	if s.Manifest.Runner.Protocol != "2" {
		return // protocol 1 has no question for it; each call's handshake tells
	}
	described, err := app.Describe(ctx, c.host.Runner, packageOf(s), s.Manifest)
	if err == nil {
		_, err = contract.Merge(s.Manifest, described)
	}
	if err == nil {
		err = unsaid(s.Manifest, described)
	}
	c.judge(s.Name, honest, err)
}

// packageOf returns the files of a plugin that is linked.
func packageOf(s registry.Shown) plugin.Package {
	dir := s.Path
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	return plugin.Package{Digest: s.Digest, Dir: dir, Dev: true}
}

// unknown checks that a plugin refuses what it does not have, and lives on. The
// kernel would never pass such a call on, so the registry of this one claims
// that the plugin has it.
func (c *checker) unknown(ctx context.Context, s registry.Shown) error {
	if s.Manifest.Runner.Kind != "process" || len(s.Manifest.Operations) == 0 {
		return nil // the host itself knows what else has
	}
	first := s.Manifest.Operations[0]
	k := c.host.Varied(app.Variation{Target: func(t *plugin.Target) {
		t.Operation = &plugin.Operation{Name: "no_such_operation", Kind: plugin.Tool, Timeout: first.Timeout}
		t.Input, t.Output = schema.Any, schema.Any
	}})
	a, err := c.host.call(ctx, request{by: k, ref: reference(s, first), input: []byte("{}")})
	if err != nil {
		return err
	}
	if why := c.barred(a); why != "" {
		c.add(s.Name, unknown, Skip, "%s", why)
		return nil
	}
	if names := c.missing(s.Manifest, nil); len(names) > 0 && plugin.CodeOf(a.err) == plugin.CodeMissingSecrets {
		c.add(s.Name, unknown, Skip, "%s", unset(names, a.err))
		return nil
	}
	switch plugin.CodeOf(a.err) {
	case plugin.CodeInvalidInput, plugin.CodePluginError, plugin.CodeToolNotExposed:
		c.add(s.Name, unknown, Pass, "")
	case "":
		c.add(s.Name, unknown, Fail, "it answered as if it had one")
	default:
		c.add(s.Name, unknown, Fail, "%s", messageOf(a.err))
	}
	return nil
}

// reference names one operation of exactly the version that is checked.
func reference(s registry.Shown, op *plugin.Operation) string {
	return s.Name + "/" + op.Name + "@" + s.Version
}
