// Package agent runs agents: it holds conversations, lets a brain decide, uses
// tools on its behalf and tells the agent's plugins of all of it.
//
// An agent is a row of the store. An [Instance] is what one process has of it
// while it takes part in anything: its bus and the hooks on that. Nothing that an
// instance keeps outlives it, and none shares anything with another (plugins and
// hooks, design rule 1).
//
// Each use of a tool is an ordinary call of the kernel. The kernel asks the
// agent's hooks before it, through [Agents.Before]; every other event is emitted
// here.
package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// A Kernel carries calls out.
type Kernel interface {
	Call(ctx context.Context, call plugin.Call) (plugin.Result, error)
}

// Plugins are what agents may be given.
type Plugins interface {
	// Hooked tells what a plugin wants to hear. A plugin that is not there has
	// the code not_found.
	Hooked(ctx context.Context, name, versions string) (Hooked, error)
	// Hook opens a plugin's hooks for one agent.
	Hook(ctx context.Context, of Owner, h Hooked) (Handlers, error)
	// Offer returns the few tools, out of these plugins and out of those that the
	// principal may use, that fit the message.
	Offer(ctx context.Context, ask Ask) ([]Tool, error)
}

// Hooked is a plugin that may want to hear of an agent.
type Hooked struct {
	Plugin string
	Digest string         // of its package: a different one makes the host open the hooks again
	Target *plugin.Target // without an operation
	Hears  bool           // it has hooks at all
	Guards bool           // one of them is to veto, and did not say that it may be skipped
}

// An Owner is the agent whose hooks are opened, and what they may see of it.
type Owner struct {
	Tenant string
	Agent  string
	Memory Memory
	Report func(plugin, level, message string, fields json.RawMessage) // what they log
}

// Handlers are the open hooks of one plugin for one agent.
type Handlers interface {
	Subscriptions() []event.Subscription
	Close() error
}

// An Ask is for tools.
type Ask struct {
	Call    plugin.Call // who asks: tenant, principal, agent, session
	Plugins []string    // that the agent has
	Text    string
	Most    int
	Left    func(LeftOut) // receives each operation that the agent has and is not offered; may be nil
}

// A LeftOut is an operation that an agent has, and that its model is not offered
// because of who asks or of the plugin's state. Who may not see the operation is
// not told of it.
type LeftOut struct {
	Operation string `json:"operation"`
	Why       string `json:"why"`
}

// A Tool is an operation as a model sees it.
type Tool struct {
	Name        string // what the model calls it
	Operation   string // plugin/operation
	Description string
	Schema      json.RawMessage

	// Input makes of what the model wrote the input of the call; nil leaves it.
	Input func(json.RawMessage) (json.RawMessage, error)
}

// Options are what agents are made from.
type Options struct {
	Store   Store
	Kernel  Kernel
	Plugins Plugins
	Model   Model // nil where none is configured
	Plans   Plans // of agents whose brain is an operation; nil where there are none

	// Open makes a session, and Closed notes that one has ended.
	Open   func(ctx context.Context, tenant, name string) (id string, err error)
	Closed func(ctx context.Context, tenant, id string) error

	// Clean takes secrets out of what a hook is told, and out of what it says. It
	// may be nil.
	Clean func(s event.Subscription) event.Subscription
	// Secrets returns the values that a secret has: two while one replaces the
	// other.
	Secrets func(ctx context.Context, tenant, name string) ([]string, error)
	// Sender maps the sender of a channel message to a principal of this host,
	// and to its role toward the agent.
	Sender func(ctx context.Context, tenant, channel, sender string) (who plugin.Principal, role, asker string, err error)
	// Wake announces a conversation whose turn is due to a free node; nil leaves
	// it to a sweep.
	Wake func(ctx context.Context, tenant, session string)
	// Notify lets the host that serves look at the notices of an agent; nil leaves
	// it to a sweep.
	Notify func(ctx context.Context, tenant, agent string)

	// Outcome returns how a call ended. If it is nil, calls that outlive their
	// turn are not reported.
	Outcome func(ctx context.Context, tenant, call string) (plugin.Result, error)

	Log  *slog.Logger
	Now  func() time.Time // the clock of the store where it is nil
	Turn time.Duration    // how long a turn may take; ten minutes where it is 0
}

// Agents are the agents of one process.
type Agents struct {
	Options
	mu        sync.Mutex
	instances map[Key]*Instance
	leaving   []*Instance // that were stopped while a turn went on
	closed    bool
}

// A Key is which agent.
type Key struct{ Tenant, Agent string }

// New returns agents of which none has an instance yet.
func New(o Options) *Agents {
	if o.Now == nil {
		o.Now = o.Store.Now
	}
	if o.Turn == 0 {
		o.Turn = 10 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Agents{Options: o, instances: map[Key]*Instance{}}
}

// Instance returns what this process has of an agent, and starts it if need be.
func (a *Agents) Instance(ctx context.Context, tenant, id string) (*Instance, error) {
	row, err := a.Store.Agent(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no agent %s; mortise agents list shows those there are", id)
	}
	key := Key{tenant, id}
	a.mu.Lock()
	i := a.instances[key]
	if mine := holder(ctx); i == nil && mine != nil && mine.key == key {
		i = mine // a turn goes on with what it began with
	}
	switch {
	case a.closed:
		a.mu.Unlock()
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the host is closing")
	case i == nil:
		i = newInstance(a, key)
		a.instances[key] = i
	}
	a.mu.Unlock()
	return i, i.start(ctx, row)
}

// Stop ends what this process has of an agent, if it has anything, or has the last
// of its turns do so that go on. Its plugins hear the reason: user, idle, shutdown
// or error.
func (a *Agents) Stop(tenant, id, reason string) error {
	a.mu.Lock()
	i := a.instances[Key{tenant, id}]
	delete(a.instances, Key{tenant, id})
	a.leaving = slices.DeleteFunc(a.leaving, (*Instance).left)
	if i != nil {
		a.leaving = append(a.leaving, i)
	}
	a.mu.Unlock()
	if i == nil {
		return nil
	}
	return i.stop(reason)
}

// Close stops all instances, and ends their turns.
func (a *Agents) Close() error {
	a.mu.Lock()
	a.closed = true
	all := append(slices.Collect(maps.Values(a.instances)), a.leaving...)
	a.instances, a.leaving = map[Key]*Instance{}, nil
	a.mu.Unlock()
	var failed error
	for _, i := range all {
		if err := i.stop(shutdown); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// Assignments returns the plugins that are assigned to an agent, by name, each with its
// version range. An assignment to the agent overrides one to all agents.
func (a *Agents) Assignments(ctx context.Context, tenant, id string) (map[string]string, error) {
	rows, err := a.Store.Assignments(ctx, tenant)
	if err != nil {
		return nil, err
	}
	// The wildcard first, so that an assignment to the agent replaces it.
	slices.SortStableFunc(rows, func(x, y AssignmentRow) int { return rank(x) - rank(y) })
	assigned := map[string]string{}
	for _, r := range rows {
		switch {
		case r.Subject != EveryAgent && r.Subject != id:
		case r.Enabled:
			assigned[r.Plugin] = r.Versions
		default:
			delete(assigned, r.Plugin)
		}
	}
	return assigned, nil
}

func rank(r AssignmentRow) int {
	if r.Subject == EveryAgent {
		return 0
	}
	return 1
}
