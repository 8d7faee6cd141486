package toolset

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/runtime/script"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Scripts are the plugins that run in the host's own engine. A program is
// compiled once for each package; an instance belongs to one agent.
type Scripts struct {
	t        *Toolset
	mu       sync.Mutex
	programs map[string]*script.Program // by package and place
}

// maxPrograms is how many compiled programs are kept.
const maxPrograms = 256

// program returns the compiled program of a plugin, whose files are still those
// that were registered.
func (s *Scripts) program(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) (*script.Program, error) {
	if err := s.t.Registry.CheckPackage(ctx, pkg); err != nil {
		return nil, err
	}
	key := pkg.Digest + "/" + m.Dir + "/" + m.Runner.Entry
	s.mu.Lock()
	program := s.programs[key]
	s.mu.Unlock()
	if program != nil {
		return program, nil
	}
	program, err := script.CompileEntry(ctx, filepath.Join(pkg.Dir, filepath.FromSlash(m.Dir)), m.Runner.Entry)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.programs) >= maxPrograms {
		clear(s.programs)
	}
	s.programs[key] = program
	return program, nil
}

// open returns a new instance of a plugin for an agent.
func (s *Scripts) open(ctx context.Context, of agent.Owner, t *plugin.Target) (*scripted, error) {
	program, err := s.program(ctx, t.Package, t.Manifest)
	if err != nil {
		return nil, err
	}
	var disabled func(err error)
	if of.Agent != "" { // of which there is another instance afterwards
		disabled = func(err error) {
			s.t.Agents.Halt(context.Background(), of.Tenant, of.Agent, t.Manifest.Name, digestOf(t), err)
		}
	}
	instance, err := script.Open(ctx, program, script.Environment{
		Disabled: disabled,
		Tenant:   of.Tenant, Agent: of.Agent, Plugin: t.Manifest.Name, Memory: remembered{of.Memory},
		Session: func(ctx context.Context) script.Session {
			c := agent.SceneOf(ctx)
			return script.Session{ID: c.Session, Type: c.Type, Channel: c.Channel, Turn: int(c.Turn)}
		},
		Log: func(level, message string, fields json.RawMessage) {
			if of.Report != nil {
				of.Report(t.Manifest.Name, level, message, fields)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &scripted{instance, t.Manifest.Default}, nil
}

// Describe runs a plugin outside any agent, to read the events and tools that
// it registers.
func (s *Scripts) Describe(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) (contract.Described, error) {
	opened, err := s.open(ctx, agent.Owner{}, &plugin.Target{Manifest: m, Package: pkg})
	if err != nil {
		return contract.Described{}, err
	}
	defer opened.Close()
	d := contract.Described{Operations: map[string]contract.DescribedOperation{}}
	for _, t := range opened.instance.Tools() {
		d.Operations[t.Name] = contract.DescribedOperation{Kind: plugin.Tool, Description: t.Description, Input: t.Schema}
	}
	for _, sub := range opened.Subscriptions() {
		h := contract.DescribedHook{Event: sub.Event, Priority: sub.Priority, Before: sub.Before, After: sub.After}
		if sub.ModeSaid {
			h.FailureMode = string(sub.Mode)
		}
		d.Hooks = append(d.Hooks, h)
	}
	return d, nil
}

// A scripted plugin is one instance of it, as an agent has it.
type scripted struct {
	instance *script.Instance
	def      plugin.Hook // what a subscription has that says nothing
}

// Subscriptions implements [agent.Handlers].
func (s *scripted) Subscriptions() []event.Subscription {
	all := s.instance.Subscriptions()
	for i := range all {
		if all[i].Priority == nil && s.def.Event == "" && s.def.Priority != 0 {
			all[i].Priority = new(s.def.Priority)
		}
		if !all[i].ModeSaid && s.def.FailureMode != "" {
			all[i].Mode, all[i].ModeSaid = event.Mode(s.def.FailureMode), true
		}
		all[i].Before = append(all[i].Before, s.def.Before...)
		all[i].After = append(all[i].After, s.def.After...)
	}
	return all
}

// Err returns why the plugin runs no more, nil as long as it does.
func (s *scripted) Err() error { return s.instance.Err() }

// Close implements [agent.Handlers].
func (s *scripted) Close() error { s.instance.Close(); return nil }

// remembered is an agent's memory as a script reads it.
type remembered struct{ agent.Memory }

// Get implements [script.Memory].
func (r remembered) Get(ctx context.Context, key string) (string, bool, error) {
	if r.Memory == (agent.Memory{}) {
		return "", false, nil
	}
	return r.Memory.Get(ctx, key)
}

// Search implements [script.Memory].
func (r remembered) Search(ctx context.Context, query string, limit int) (json.RawMessage, error) {
	found := []agent.Remembered{}
	if r.Memory != (agent.Memory{}) {
		rows, err := r.Memory.Search(ctx, query, limit)
		if err != nil {
			return nil, err
		}
		found = agent.RememberedOf(rows)
	}
	return json.Marshal(found)
}

// Run implements [kernel.Runner] for the tools that scripts add: in the
// instance of the calling agent, or in a separate instance if the caller is not
// an agent.
func (s *Scripts) Run(ctx context.Context, t *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
	res := plugin.Result{Status: plugin.Failed}
	opened, done, err := s.instance(ctx, t, call)
	if err != nil {
		return res, err
	}
	defer done()
	ctx, read := agent.Tainting(ctx) // what it reads of the agent's memory may be in what it says
	data, err := opened.instance.Call(ctx, t.Operation.Name, call.Input)
	res.Labels = read()
	if err != nil {
		return res, err
	}
	return plugin.Result{Status: plugin.Succeeded, Data: data, Labels: res.Labels}, nil
}

// instance returns where a call runs. done must be called.
func (s *Scripts) instance(ctx context.Context, t *plugin.Target, call *plugin.Call) (opened *scripted, done func(), err error) {
	of := agent.Owner{Tenant: call.Tenant, Agent: call.Agent}
	if call.Agent != "" {
		i, err := s.t.Agents.Instance(ctx, call.Tenant, call.Agent)
		if err != nil {
			return nil, nil, err
		}
		opened, err := i.Opened(ctx, t.Manifest.Name)
		if err != nil {
			return nil, nil, err
		}
		if mine, ok := opened.(*scripted); ok {
			return mine, func() {}, nil
		}
	}
	if opened, err = s.open(ctx, of, t); err != nil {
		return nil, nil, err
	}
	return opened, func() { _ = opened.Close() }, nil
}

// Preview implements [kernel.Runner].
func (s *Scripts) Preview(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (json.RawMessage, error) {
	return nil, nothingToPreview
}

// Reconcile implements [kernel.Runner].
func (s *Scripts) Reconcile(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
	return protocol.Reconciled{}, nothingToPreview
}

// nothingToPreview is the answer to what has no effects.
var nothingToPreview = plugin.Errorf(plugin.CodeUnavailable, "what the host runs itself has no effects outside, and nothing to preview or reconcile")

// Isolation implements [kernel.Runner]: the engine has neither files nor network.
func (s *Scripts) Isolation(*plugin.Target) string { return "full" }
