// Package reported knows the tools that other programs run and ask the host about: how each
// is called as an operation, and which descriptions of it were accepted.
//
// Nothing runs here. A call of such a tool is in progress once it is allowed, until the
// program that runs it says how it ended.
package reported

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Prefix begins the names of the plugins that stand for programs. No plugin is called
// by a name that begins so.
const Prefix = "reported."

// Effect is the effect of every tool of which the host knows no more than its name.
const Effect = "reported_tool"

// Life is how long a program has to say how a tool ended.
const Life = time.Hour

const (
	undefined = "0.0.0" // the version of a tool that is not described
	defined   = "0.0.0+"
	maxShown  = 32 << 10 // bytes of a description that a person is shown
)

var (
	programForm = pattern.New(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	toolForm    = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)
	digestForm  = pattern.New(`^[0-9a-f]{64}$`)
)

// Ref returns the reference of a tool of a program, with the hash of its description, as
// package canon writes it; "" where there is none. It is "" where no such tool can be.
func Ref(program, tool, hash string) string {
	digest := strings.TrimPrefix(hash, "sha256:")
	if !programForm.MatchString(program) || !toolForm.MatchString(tool) || digest != "" && !digestForm.MatchString(digest) {
		return ""
	}
	version := undefined
	if digest != "" {
		version = defined + digest
	}
	return Prefix + program + "/" + tool + "@=" + version
}

// Resolve returns the tool that a reference means; nil where it means none.
func Resolve(ref string, anything plugin.Schema) *plugin.Target {
	rest, is := strings.CutPrefix(ref, Prefix)
	if !is {
		return nil
	}
	name, version, versioned := strings.Cut(rest, "@=")
	program, tool, ok := strings.Cut(name, "/")
	if !versioned {
		version = undefined
	}
	digest, described := strings.CutPrefix(version, defined)
	if !ok || !programForm.MatchString(program) || !toolForm.MatchString(tool) || described && !digestForm.MatchString(digest) || !described && version != undefined {
		return nil
	}
	op := &plugin.Operation{
		Name: tool, Kind: plugin.Operator, Description: "A tool that " + program + " runs itself.", Effects: []string{Effect},
		Timeout: 30 * time.Second, Preview: true, Reconcile: true,
	}
	m := &plugin.Manifest{Name: Prefix + program, Version: version, Dialect: "reported", Runner: plugin.Runner{Kind: plugin.RunnerReported}, Operations: []*plugin.Operation{op}}
	hash := "none"
	if described {
		hash = "sha256:" + digest
	}
	return &plugin.Target{Manifest: m, Operation: op, Package: plugin.Package{Digest: hash}, Input: anything, Output: anything}
}

// Counts keeps numbers in the store that the nodes share; see package quota.
type Counts interface {
	Add(ctx context.Context, tenant, subject, period string, n, limit int64) (total int64, ok bool, err error)
	Total(ctx context.Context, tenant, subject, period string) (int64, error)
}

// Tools carry out what the kernel asks of a runner for these tools. They are safe for
// concurrent use.
type Tools struct {
	Counts Counts

	// accepting is held while a description is accepted, which takes two marks. On another
	// node the same description may be asked about between them: it takes an approval then.
	accepting sync.RWMutex
	accepted  sync.Map // of marks that are known to be set, which are never taken back
}

type mark struct{ tenant, tool, hash string }

// anyHash marks that some description of a tool was accepted.
const anyHash = "any"

// Changed reports whether a tool is described in another way than it was so far, and no
// person has accepted that. The first description, or its absence, is what it is held
// against.
func (t *Tools) Changed(ctx context.Context, tenant string, of *plugin.Target) (bool, error) {
	m := mark{tenant, of.Name(), of.Package.Digest}
	if _, known := t.accepted.Load(m); known {
		return false, nil
	}
	t.accepting.RLock()
	defer t.accepting.RUnlock()
	return t.changed(ctx, m)
}

// changed is [Tools.Changed] while accepting is held.
func (t *Tools) changed(ctx context.Context, m mark) (bool, error) {
	n, err := t.Counts.Total(ctx, m.tenant, "definition:"+m.tool, m.hash)
	if err != nil || n > 0 {
		if err == nil {
			t.accepted.Store(m, true)
		}
		return false, err
	}
	n, err = t.Counts.Total(ctx, m.tenant, "definition:"+m.tool, anyHash)
	return n > 0, err
}

// accept marks the description of a tool as accepted.
func (t *Tools) accept(ctx context.Context, tenant string, of *plugin.Target, approved bool) error {
	m := mark{tenant, of.Name(), of.Package.Digest}
	if _, known := t.accepted.Load(m); known {
		return nil
	}
	t.accepting.Lock()
	defer t.accepting.Unlock()
	// Of several first descriptions at a time one is the first.
	_, first, err := t.Counts.Add(ctx, tenant, "definition:"+m.tool, anyHash, 1, 1)
	if err != nil {
		return err
	}
	if !first && !approved {
		if changed, err := t.changed(ctx, m); err != nil || !changed {
			return err
		}
		return plugin.Errorf(plugin.CodeUnavailable, "%s was described in another way at the same time; ask again", m.tool)
	}
	if _, _, err := t.Counts.Add(ctx, tenant, "definition:"+m.tool, m.hash, 1, math.MaxInt64); err != nil {
		return err
	}
	t.accepted.Store(m, true)
	return nil
}

// Run accepts how the tool is described, and leaves the call in progress.
func (t *Tools) Run(ctx context.Context, of *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
	if call.Dry == nil {
		approved := call.Decision != nil && call.Decision.Verdict == plugin.AllowWithApproval
		if err := t.accept(ctx, call.Tenant, of, approved); err != nil {
			return plugin.Result{}, notSent{err}
		}
	}
	return plugin.Result{Status: plugin.InProgress}, nil
}

// notSent is an error of a call of which the program that runs the tool heard nothing.
type notSent struct{ error }

// Sent reports that it was not.
func (notSent) Sent() bool { return false }

// Unwrap returns the error.
func (n notSent) Unwrap() error { return n.error }

// Preview returns what a person is shown of a tool beside its arguments: how the program
// describes it.
func (t *Tools) Preview(ctx context.Context, of *plugin.Target, call *plugin.Call, _ plugin.Services) (json.RawMessage, error) {
	changed, err := t.Changed(ctx, call.Tenant, of)
	if err != nil {
		return nil, err
	}
	shown := map[string]any{"program": strings.TrimPrefix(of.Manifest.Name, Prefix), "tool": of.Operation.Name, "definition_hash": of.Package.Digest, "definition_changed": changed}
	switch {
	case len(call.Definition) > maxShown:
		shown["definition_begins"] = strings.ToValidUTF8(string(call.Definition[:maxShown]), "")
	case len(call.Definition) > 0:
		shown["definition"] = call.Definition
	}
	return json.Marshal(shown)
}

// Reconcile finds nothing out: the program says how its tool ended, or no one does.
func (*Tools) Reconcile(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
	return protocol.Reconciled{}, plugin.Errorf(plugin.CodeInvalidInput, "a tool that another program runs cannot be asked how it ended")
}

// Isolation returns none: the host has no part in how the tool runs.
func (*Tools) Isolation(*plugin.Target) string { return "none" }
