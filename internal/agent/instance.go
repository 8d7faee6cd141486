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
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// An Instance is what one process has of an agent: its bus, and the hooks of its
// plugins on that. Its hooks are opened and closed by one goroutine at a time, and
// no lock is held while a plugin runs, so that one that calls back does not wait
// for itself.
type Instance struct {
	agents *Agents
	key    Key
	bus    *event.Bus
	closed atomic.Bool     // its bus is, or is about to be
	ran    atomic.Bool     // its agent was started at some time, and not only talked to
	ctx    context.Context // of its turns: it ends with the host
	cancel context.CancelCauseFunc
	gate   chan struct{} // a semaphore of one: its holder opens and closes hooks

	mu        sync.Mutex // guards the rest
	row       AgentRow
	started   bool
	turns     int                      // that go on
	used      time.Time                // when it was asked for, or had a turn, last
	ending    string                   // why it is stopped; "" while it is not
	idle      chan struct{}            // closed once it is stopped and no turn goes on
	done      chan struct{}            // closed once its plugins are let go
	open      map[string]opened        // hooks, by plugin; only the holder of the gate changes these two
	failed    map[string]failure       // plugins whose hooks could not be opened
	unoffered map[LeftOut]bool         // operations whose absence was logged
	taking    map[string]chan struct{} // deliveries that are being taken in, by their marks
}

// An opened is a plugin whose hooks are on the bus.
type opened struct {
	digest   string
	handlers Handlers
	off      []func()
}

// A failure is a plugin whose hooks could not be opened, so that its guards do
// not run.
type failure struct {
	plugin string
	digest string
	guards bool
	halted bool // it is disabled until a person enables it again
	err    error
	at     time.Time
}

// retryTime is for how long a plugin whose hooks could not be opened is left alone,
// while its package is the same.
const retryTime = 30 * time.Second

func newInstance(a *Agents, key Key) *Instance {
	i := &Instance{
		agents: a, key: key, used: a.Now(), bus: event.NewBus(key.Agent, event.Options{Log: a.Log}), gate: make(chan struct{}, 1),
		idle: make(chan struct{}), done: make(chan struct{}), open: map[string]opened{}, failed: map[string]failure{}, taking: map[string]chan struct{}{}, unoffered: map[LeftOut]bool{},
	}
	i.ctx, i.cancel = context.WithCancelCause(context.Background())
	return i
}

// Bus returns the instance's own bus.
func (i *Instance) Bus() *event.Bus { return i.bus }

// start brings the instance up to date with its agent, and tells its plugins
// the first time.
func (i *Instance) start(ctx context.Context, row *AgentRow) error {
	if err := i.enter(ctx); err != nil {
		return err
	}
	i.mu.Lock()
	i.row, i.used = *row, i.agents.Now()
	i.mu.Unlock()
	if row.State == AgentRunning {
		i.ran.Store(true)
	}
	problems, err := i.sync(ctx)
	i.mu.Lock()
	first := err == nil && !i.started
	i.started = i.started || first
	i.mu.Unlock()
	<-i.gate
	for _, f := range problems {
		i.agents.Log.Error("the hooks of a plugin could not be opened", "agent", i.key.Agent, "plugin", f.plugin, "cause", f.err.Error())
		_ = i.happened(ctx, event.PluginError, fields{"pluginId": f.plugin, "event": event.AgentStarted, "message": f.err.Error(), "stack": ""})
	}
	if err != nil || !first {
		return err
	}
	return i.happened(ctx, event.AgentStarted, nil)
}

// enter waits for the gate.
func (i *Instance) enter(ctx context.Context) error {
	select {
	case i.gate <- struct{}{}:
	case <-ctx.Done():
		return plugin.AsError(context.Cause(ctx))
	}
	if i.closed.Load() {
		<-i.gate
		return i.gone()
	}
	return nil
}

// errStopped is in every error that is of an instance which was stopped.
var errStopped = errors.New("the instance was stopped")

func (i *Instance) gone() error {
	return plugin.Errorf(plugin.CodeUnavailable, "agent %s has just been stopped here; try again: %w", i.key.Agent, errStopped)
}

// hold keeps the instance for a turn: one that was begun goes on where the agent
// is stopped meanwhile. release must be called.
func (i *Instance) hold() (release func(), err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ending != "" {
		return nil, i.gone()
	}
	i.turns++
	return func() {
		i.mu.Lock()
		i.turns--
		i.used = i.agents.Now()
		reason, last := i.ending, i.turns == 0 && i.ending != ""
		if last {
			close(i.idle)
		}
		i.mu.Unlock()
		if last && reason != shutdown { // otherwise the caller of Stop is waiting and finishes itself
			if err := i.finish(reason); err != nil {
				i.agents.Log.Warn("an agent was stopped, and its plugins were not all let go", "agent", i.key.Agent, "cause", err.Error())
			}
		}
	}, nil
}

// shutdown is why an agent stops whose host ends: its turns end too.
const shutdown = "shutdown"

// stop tells the plugins, and lets them go, once no turn goes on. Only where the
// host ends are turns ended, and waited for.
func (i *Instance) stop(reason string) error {
	i.mu.Lock()
	again, busy := i.ending != "", i.turns > 0
	if !again {
		i.ending = reason
	}
	i.mu.Unlock()
	if busy && reason == shutdown {
		i.cancel(plugin.Errorf(plugin.CodeUnavailable, "the host is closing"))
		wait := i.idle
		if again {
			wait = i.done
		}
		timer := time.NewTimer(stopTime)
		defer timer.Stop()
		select {
		case <-wait:
		case <-timer.C:
			i.agents.Log.Warn("a turn goes on while its host closes", "agent", i.key.Agent, "waited", stopTime)
		}
	}
	if again || busy && reason != shutdown {
		return nil // the last turn does the rest
	}
	return i.finish(reason)
}

// finish tells the plugins that it is over, and lets them go.
func (i *Instance) finish(reason string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	defer close(i.done)
	defer i.cancel(nil)
	var errs []error
	i.mu.Lock()
	started := i.started
	i.mu.Unlock()
	if started {
		errs = append(errs, i.emit(ctx, event.AgentStopped, fields{"reason": reason}))
	}
	i.closed.Store(true)
	i.bus.Close()
	select { // an opener of hooks finds the bus closed, and gives them back
	case i.gate <- struct{}{}:
	case <-ctx.Done():
		return errors.Join(append(errs, i.gone())...)
	}
	defer func() { <-i.gate }()
	i.mu.Lock()
	open := i.open
	i.open = map[string]opened{}
	i.mu.Unlock()
	for _, o := range open {
		errs = append(errs, o.handlers.Close())
	}
	return errors.Join(errs...)
}

// left reports whether nothing is left to do of one that was stopped.
func (i *Instance) left() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// stopTime is how long an agent's plugins have to hear that it stops.
const stopTime = 5 * time.Second

// sync puts the hooks of the agent's present plugins on the bus. A plugin whose
// hooks cannot be opened is left out, and what it guards is unguarded: it is
// marked as failed before its old hooks are removed. New hooks are added before
// the old ones are removed. sync returns the plugins that failed now.
func (i *Instance) sync(ctx context.Context) (problems []failure, err error) {
	assigned, err := i.agents.Assignments(ctx, i.key.Tenant, i.key.Agent)
	if err != nil {
		return nil, err
	}
	want, now := map[string]Hooked{}, i.agents.Now()
	fail := func(h Hooked, err error) {
		f := failure{h.Plugin, h.Digest, h.Guards, plugin.CodeOf(err) == plugin.CodeDisabled, err, now}
		problems = append(problems, f)
		i.mu.Lock()
		i.failed[h.Plugin] = f
		i.mu.Unlock()
	}
	unsure := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(assigned)) {
		h, err := i.agents.Plugins.Hooked(ctx, name, assigned[name])
		switch {
		case err != nil && ctx.Err() != nil:
			return problems, plugin.AsError(context.Cause(ctx))
		case plugin.CodeOf(err) == plugin.CodeNotFound || plugin.CodeOf(err) == plugin.CodeDisabled:
			continue // it was removed, or is switched off for everybody
		case err != nil:
			unsure[name] = true
			fail(Hooked{Plugin: name, Guards: true}, err)
		case h.Hears:
			want[name] = h
		}
	}
	for _, name := range slices.Collect(maps.Keys(i.open)) {
		if _, found := want[name]; !found {
			i.close(name)
		}
	}
	for _, name := range slices.Collect(maps.Keys(i.failed)) {
		if _, found := want[name]; !found && !unsure[name] {
			i.recovered(name)
		}
	}
	// By name: then so is the order of registration, wherever the agent runs.
	for _, name := range slices.Sorted(maps.Keys(want)) {
		h := want[name]
		halted, err := i.halted(ctx, h)
		if err != nil {
			return problems, err
		}
		was, failedBefore := i.failed[name]
		if halted != nil {
			if !failedBefore || !was.halted || was.digest != h.Digest {
				fail(h, halted)
			}
			i.close(name)
			continue
		}
		if o, found := i.open[name]; found && o.digest == h.Digest && !o.ended() {
			continue
		}
		if failedBefore && !was.halted && was.digest == h.Digest && h.Digest != "" && now.Sub(was.at) < retryTime {
			continue
		}
		o, err := i.hook(ctx, h)
		if err != nil && ctx.Err() != nil { // which says nothing of the plugin
			return problems, plugin.AsError(context.Cause(ctx))
		}
		if err != nil {
			fail(h, err)
			i.close(name)
			continue
		}
		i.close(name)
		i.mu.Lock()
		i.open[name] = o
		i.mu.Unlock()
		i.recovered(name)
	}
	return problems, nil
}

// recovered forgets that the hooks of a plugin could not be opened.
func (i *Instance) recovered(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.failed, name)
}

// close takes the hooks of a plugin off the bus, if it has any there.
func (i *Instance) close(name string) {
	i.mu.Lock()
	o, found := i.open[name]
	delete(i.open, name)
	i.mu.Unlock()
	if !found {
		return
	}
	for _, off := range o.off {
		off()
	}
	if err := o.handlers.Close(); err != nil {
		i.agents.Log.Warn("the hooks of a plugin could not be closed", "agent", i.key.Agent, "plugin", name, "cause", err.Error())
	}
}

// hook puts a plugin's hooks on the bus: all of them, or none.
func (i *Instance) hook(ctx context.Context, h Hooked) (o opened, err error) {
	handlers, err := i.agents.Plugins.Hook(ctx, Owner{
		Tenant: i.key.Tenant, Agent: i.key.Agent, Memory: Memory{i.agents, i.key}, Report: i.report,
	}, h)
	if err != nil {
		return o, err
	}
	o = opened{digest: h.Digest, handlers: handlers}
	for _, s := range handlers.Subscriptions() {
		s.Plugin = h.Plugin
		if i.agents.Clean != nil {
			s = i.agents.Clean(s)
		}
		off, err := i.bus.On(s)
		if err != nil {
			for _, off := range o.off {
				off()
			}
			return o, errors.Join(err, handlers.Close())
		}
		o.off = append(o.off, off)
	}
	return o, nil
}

// maxLeft is how many operations that are left out are logged of one instance.
const maxLeft = 1000

// leftOut says in the log that an operation of the agent's is not offered to its
// model, once for each reason: its developer would look for it in vain.
func (i *Instance) leftOut(l LeftOut) {
	i.mu.Lock()
	known := i.unoffered[l] || len(i.unoffered) >= maxLeft
	if !known {
		i.unoffered[l] = true
	}
	i.mu.Unlock()
	if !known {
		i.agents.Log.Info("an operation of the agent is not offered to its model; 'mortise agents show "+i.key.Agent+"' has all of them",
			"agent", i.key.Agent, "operation", l.Operation, "why", l.Why)
	}
}

// Failed tells the plugins of an agent, where this process has an instance of it,
// that a hook of one of them failed after all had gone on.
func (a *Agents) Failed(ctx context.Context, tenant, id, name, on, message string) {
	a.mu.Lock()
	i := a.instances[Key{tenant, id}]
	a.mu.Unlock()
	if i != nil {
		_ = i.happened(ctx, event.PluginError, fields{"pluginId": name, "event": on, "message": message, "stack": ""})
	}
}

// unguarded returns why a call with effects lacks a guard; "" if all plugins
// that guard are present.
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
func (i *Instance) agent() AgentRow {
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
