package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/event"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// An Instance is what one process has of an agent: its bus, and the hooks of its
// plugins on that.
type Instance struct {
	agents *Agents
	key    Key
	bus    *event.Bus

	arriving sync.Mutex // held while it is found out which conversation a message belongs to

	mu      sync.Mutex // guards the rest; held while hooks are opened and closed
	row     store.AgentRow
	started bool
	open    map[string]opened  // hooks, by plugin
	failed  map[string]failure // plugins whose hooks could not be opened
}

// An opened is a plugin whose hooks are on the bus.
type opened struct {
	digest   string
	handlers Handlers
}

// A failure is a plugin whose hooks could not be opened, so that nobody guards
// what it was to guard.
type failure struct {
	digest string
	guards bool
	err    error
}

func newInstance(a *Agents, key Key) *Instance {
	return &Instance{
		agents: a, key: key, bus: event.NewBus(key.Agent, event.Options{Log: a.Log}),
		open: map[string]opened{}, failed: map[string]failure{},
	}
}

// Bus returns the instance's own bus.
func (i *Instance) Bus() *event.Bus { return i.bus }

// start brings the instance up to date with its agent, and tells its plugins
// the first time.
func (i *Instance) start(ctx context.Context, row *store.AgentRow) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.row = *row
	if err := i.sync(ctx); err != nil {
		return err
	}
	if i.started {
		return nil
	}
	i.started = true
	return i.emit(ctx, event.AgentStarted, nil)
}

// stop tells the plugins, and lets them go.
func (i *Instance) stop(reason string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var errs []error
	if i.started {
		errs = append(errs, i.emit(ctx, event.AgentStopped, fields{"reason": reason}))
	}
	i.bus.Close()
	for _, o := range i.open {
		errs = append(errs, o.handlers.Close())
	}
	i.open = map[string]opened{}
	return errors.Join(errs...)
}

// stopTime is how long an agent's plugins have to hear that it stops.
const stopTime = 5 * time.Second

// sync has the hooks on the bus that the agent's plugins have now. One whose
// hooks cannot be opened is left out, and what it guards is guarded by nobody.
func (i *Instance) sync(ctx context.Context) error {
	given, err := i.agents.Given(ctx, i.key.Tenant, i.key.Agent)
	if err != nil {
		return err
	}
	want := map[string]Hooked{}
	for name, versions := range given {
		h, err := i.agents.Plugins.Hooked(ctx, name, versions)
		switch {
		case plugin.CodeOf(err) == plugin.CodeNotFound || plugin.CodeOf(err) == plugin.CodeDisabled:
			continue // it was removed, or is switched off for everybody
		case err != nil:
			i.fail(ctx, Hooked{Plugin: name, Guards: true}, err)
		case h.Hears:
			want[name] = h
		}
	}
	for name, o := range i.open {
		if h, found := want[name]; !found || h.Digest != o.digest {
			i.bus.Remove(name)
			delete(i.open, name)
			if err := o.handlers.Close(); err != nil {
				i.agents.Log.Warn("the hooks of a plugin could not be closed", "agent", i.key.Agent, "plugin", name, "cause", err.Error())
			}
		}
	}
	for name := range i.failed {
		if _, found := given[name]; !found {
			delete(i.failed, name)
		}
	}
	// By name: then so is the order of registration, wherever the agent runs.
	for _, name := range slices.Sorted(maps.Keys(want)) {
		h := want[name]
		if _, found := i.open[name]; found {
			continue
		}
		if f, found := i.failed[name]; found && f.digest == h.Digest && h.Digest != "" {
			continue // it will fail again
		}
		if err := i.hook(ctx, h); err != nil {
			i.fail(ctx, h, err)
			continue
		}
		delete(i.failed, name)
	}
	return nil
}

// hook puts a plugin's hooks on the bus: all of them, or none.
func (i *Instance) hook(ctx context.Context, h Hooked) error {
	handlers, err := i.agents.Plugins.Hook(ctx, Owner{
		Tenant: i.key.Tenant, Agent: i.key.Agent, Memory: Memory{i.agents, i.key}, Report: i.report,
	}, h)
	if err != nil {
		return err
	}
	for _, s := range handlers.Subscriptions() {
		s.Plugin = h.Plugin
		if _, err := i.bus.On(s); err != nil {
			i.bus.Remove(h.Plugin)
			return errors.Join(err, handlers.Close())
		}
	}
	i.open[h.Plugin] = opened{h.Digest, handlers}
	return nil
}

// fail takes note of a plugin whose hooks could not be opened, and tells the
// others.
func (i *Instance) fail(ctx context.Context, h Hooked, err error) {
	i.failed[h.Plugin] = failure{h.Digest, h.Guards, err}
	i.agents.Log.Error("the hooks of a plugin could not be opened", "agent", i.key.Agent, "plugin", h.Plugin, "cause", err.Error())
	_ = i.emit(ctx, event.PluginError, fields{"pluginId": h.Plugin, "event": event.AgentStarted, "message": err.Error(), "stack": ""})
}

// Failed tells the plugins of an agent, where this process has an instance of it,
// that a hook of one of them failed after all had gone on.
func (a *Agents) Failed(ctx context.Context, tenant, id, name, on, message string) {
	a.mu.Lock()
	i := a.instances[Key{tenant, id}]
	a.mu.Unlock()
	if i != nil {
		_ = i.emit(ctx, event.PluginError, fields{"pluginId": name, "event": on, "message": message, "stack": ""})
	}
}

// unguarded returns why a call with effects is guarded by nobody; "" if all of
// the plugins that are to guard are there.
func (i *Instance) unguarded() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for name, f := range i.failed {
		if f.guards {
			all = append(all, fmt.Sprintf("%s, which guards tool.before@v1, could not be loaded: %v", name, f.err))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// report puts what a plugin logs into the host's log.
func (i *Instance) report(name, level, message string, more json.RawMessage) {
	args := []any{"agent", i.key.Agent, "plugin", name}
	if len(more) > 0 {
		args = append(args, "fields", string(more))
	}
	switch level {
	case "error":
		i.agents.Log.Error(message, args...)
	case "warn", "warning":
		i.agents.Log.Warn(message, args...)
	case "debug":
		i.agents.Log.Debug(message, args...)
	default:
		i.agents.Log.Info(message, args...)
	}
}

// Opened returns what is open of a plugin for this agent, nil where it hears
// nothing, and an error where it could not be opened.
func (i *Instance) Opened(_ context.Context, name string) (Handlers, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if f, found := i.failed[name]; found {
		return nil, f.err
	}
	return i.open[name].handlers, nil
}

// agent returns the row that the instance was last brought up to date with.
func (i *Instance) agent() store.AgentRow {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.row
}

// refresh brings the instance up to date: what it was given since, or lost.
func (i *Instance) refresh(ctx context.Context) error {
	row, err := i.agents.Store.Agent(ctx, i.key.Tenant, i.key.Agent)
	if err != nil {
		return err
	}
	if row == nil {
		return plugin.Errorf(plugin.CodeNotFound, "agent %s was deleted", i.key.Agent)
	}
	return i.start(ctx, row)
}
