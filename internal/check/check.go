// Package check judges plugins by their own contract, by running them for real
// in a host that is thrown away afterwards.
package check

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/canon"
	"github.com/mortise-dev/mortise/internal/registry"
	"github.com/mortise-dev/mortise/internal/registry/dialect"
	"github.com/mortise-dev/mortise/internal/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// A Report is what checking a path found.
type Report struct {
	Results []Result `json:"results"`
}

// Failed counts the results that are failures.
func (r *Report) Failed() int {
	n := 0
	for _, result := range r.Results {
		if result.Outcome == Fail {
			n++
		}
	}
	return n
}

// A Result is one check of one plugin.
type Result struct {
	Plugin  string  `json:"plugin"` // its name, or its path where it has none yet
	Check   string  `json:"check"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"`
}

// An Outcome is how a check ended.
type Outcome string

// The outcomes. A check that could not be made says why.
const (
	Pass Outcome = "pass"
	Fail Outcome = "fail"
	Warn Outcome = "warn"
	Skip Outcome = "not run"
)

// Run checks the plugin at path, or every plugin of the tree under it. observe
// hears of each result as it comes; it may be nil. The error is about the
// checking, not the plugins.
func Run(ctx context.Context, path string, observe func(Result)) (_ Report, err error) {
	home, err := os.MkdirTemp("", "mortise-check-")
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	conf := filepath.Join(home, "mortise.yaml")
	if err := os.WriteFile(conf, []byte("policy: {allow: [{kinds: [tool]}]}\n"), 0o600); err != nil {
		return Report{}, err
	}
	a, err := app.Open(ctx, app.Options{Home: home, Config: conf, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()

	c := &checker{app: a, observe: observe}
	report, err := a.Registry.Register(ctx, path, registry.RegisterOptions{Dev: true, Enable: true})
	for _, f := range report.Failed {
		c.manifest(f.Path, f.Err)
	}
	for _, r := range report.Registered {
		c.plugin(ctx, r)
	}
	if len(report.Failed)+len(report.Registered) == 0 && err != nil {
		return c.report, err
	}
	return c.report, nil
}

// A checker makes the checks of one run.
type checker struct {
	app     *app.App
	observe func(Result)
	report  Report
}

func (c *checker) add(name, check string, outcome Outcome, format string, args ...any) {
	result := Result{name, check, outcome, fmt.Sprintf(format, args...)}
	c.report.Results = append(c.report.Results, result)
	if c.observe != nil {
		c.observe(result)
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
	var problems dialect.Problems
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

// Checks that are made in more than one place.
const (
	starts = "starts and describes itself"
	honest = "its code is what the manifest says"
)

// plugin makes all checks of one plugin whose manifest can be read.
func (c *checker) plugin(ctx context.Context, r registry.Registered) {
	c.add(r.Name, "manifest", Pass, "")
	if reading, err := dialect.Inspect(r.Path); err == nil {
		for _, note := range reading.Notes {
			c.add(r.Name, "manifest", Warn, "%s", note)
		}
	}
	if r.NotEnabled != nil {
		c.add(r.Name, starts, Fail, "%s", messageOf(r.NotEnabled))
		return
	}
	shown, err := c.app.Registry.Show(ctx, r.Name+"@"+r.Version)
	if !c.judge(r.Name, starts, err) {
		return
	}
	c.honest(ctx, shown)
	for _, op := range shown.Manifest.Operations {
		c.operation(ctx, shown, op)
	}
	c.unknown(ctx, shown)
}

// honest checks that the code is what the manifest says. The host asks it only
// for what the manifest leaves open; here it is asked in any case.
func (c *checker) honest(ctx context.Context, s registry.Shown) {
	if s.Manifest.Runner.Protocol != "2" {
		return // protocol 1 has no question for it; each call's handshake tells
	}
	described, err := app.Describe(ctx, c.app.Runner, packageOf(s), s.Manifest)
	if err == nil {
		_, err = dialect.Merge(s.Manifest, described)
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

// unknown checks that a plugin refuses what it does not have, and lives on.
func (c *checker) unknown(ctx context.Context, s registry.Shown) {
	const check = "refuses an operation it does not have"
	m := *s.Manifest
	op := &plugin.Operation{Name: "no_such_operation", Kind: plugin.Tool, Timeout: m.Operations[0].Timeout}
	t := &plugin.Target{Manifest: &m, Operation: op, Package: packageOf(s)}
	call := &plugin.Call{ID: "check", Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "check"}, Input: []byte("{}")}
	ctx, cancel := context.WithTimeoutCause(ctx, op.Timeout, plugin.Errorf(plugin.CodeTimeout, "it did not answer within %s", op.Timeout))
	defer cancel()
	_, err := c.app.Runner.Run(ctx, t, call, nil)
	switch plugin.CodeOf(err) {
	case plugin.CodeInvalidInput, plugin.CodePluginError, plugin.CodeToolNotExposed:
		c.add(s.Name, check, Pass, "")
	case "":
		c.add(s.Name, check, Fail, "it answered as if it had one")
	default:
		c.add(s.Name, check, Fail, "%s", messageOf(err))
	}
}

// operation checks one operation by its examples.
func (c *checker) operation(ctx context.Context, s registry.Shown, op *plugin.Operation) {
	name := s.Name + "/" + op.Name
	if op.Input == nil || op.Output == nil {
		c.add(name, "has schemas", Warn, "a schema for its input and one for its output let the host refuse what does not fit")
	} else {
		c.add(name, "has schemas", Pass, "")
	}
	if op.Description == "" {
		c.add(name, "has a description", Warn, "people and models choose by it")
	}
	input, err := c.example(s, op)
	const runs = "runs its example"
	switch {
	case err != nil:
		c.add(name, runs, Fail, "%s", err)
		return
	case input == nil:
		c.add(name, runs, Skip, "there is no examples/%s.request.json, and it does not take an empty input", op.Name)
		return
	case op.Kind != plugin.Tool:
		c.add(name, runs, Skip, "it is an %s and may have effects", op.Kind)
		return
	}
	first, err := c.call(ctx, name, s.Version, input)
	if !c.judge(name, runs, err) {
		return
	}
	const pure = "gives the same result twice"
	if first.Nondeterminism != nil && first.Nondeterminism.Is || op.NoCache {
		c.add(name, pure, Skip, "it says that it need not")
		return
	}
	second, err := c.call(ctx, name, s.Version, input)
	if err == nil && !equal(first.Data, second.Data) {
		outcome, detail := Fail, "two calls with one input gave two results; say nondeterminism in the result, or no_cache: true in the manifest"
		if c.readsFiles(input) { // such results are not reused
			outcome, detail = Warn, "two calls with one input gave two results"
		}
		c.add(name, pure, outcome, "%s", detail)
		return
	}
	c.judge(name, pure, err)
}

// readsFiles reports whether an input has artifacts.
func (c *checker) readsFiles(input []byte) bool {
	var in map[string]jsontext.Value
	return json2.Unmarshal(input, &in) == nil && in["artifacts"] != nil
}

func (c *checker) call(ctx context.Context, name, version string, input []byte) (plugin.Result, error) {
	return c.app.Kernel.Call(ctx, plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "check", Scopes: []string{"*"}},
		Origin: plugin.OriginCLI, Operation: name + "@" + version, Input: input, Fresh: true,
	})
}

func equal(a, b []byte) bool {
	x, errX := canon.Hash(a)
	y, errY := canon.Hash(b)
	return errX == nil && errY == nil && x == y
}

// example returns an input for op: that of its example, or the empty one where
// the schema takes it, or none. A response beside it must fit its schema.
func (c *checker) example(s registry.Shown, op *plugin.Operation) ([]byte, error) {
	dir := filepath.Join(s.Path, "examples")
	names := []string{op.Name + "."}
	if len(s.Manifest.Operations) == 1 {
		names = append(names, "")
	}
	for _, name := range names {
		request, err := os.ReadFile(filepath.Join(dir, name+"request.json"))
		if err != nil {
			continue
		}
		if response, err := os.ReadFile(filepath.Join(dir, name+"response.json")); err == nil {
			out, err := schema.Compile(op.Output)
			if err == nil {
				err = out.Check(response)
			}
			if err != nil {
				return nil, fmt.Errorf("examples/%sresponse.json: %w", name, err)
			}
		}
		return atHome(request, s.Path)
	}
	in, err := schema.Compile(op.Input)
	if err != nil {
		return nil, err
	}
	if in.Check([]byte("{}")) == nil {
		return []byte("{}"), nil
	}
	return nil, nil
}

// atHome makes the paths of an example's artifacts absolute: they are written
// relative to the plugin's directory.
func atHome(request []byte, dir string) ([]byte, error) {
	var in map[string]any
	if err := json2.Unmarshal(request, &in); err != nil {
		return nil, fmt.Errorf("the example is not one JSON object: %w", err)
	}
	list, _ := in["artifacts"].([]any)
	if len(list) == 0 {
		return request, nil
	}
	base, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if artifact, ok := item.(map[string]any); ok {
			if path, ok := artifact["path"].(string); ok && !filepath.IsAbs(path) {
				artifact["path"] = filepath.Join(base, path)
			}
		}
	}
	return json2.Marshal(in)
}
