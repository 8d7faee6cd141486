package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// An Instance is one plugin in one agent. Its code keeps what it likes in memory
// from one event to the next; nothing of that outlives the instance.
//
// One goroutine at a time is inside; others wait for their turn. Its methods are
// safe for concurrent use. If a handler has to be stopped, or needs more memory
// than it may have, the next call finds a fresh engine, in which register has run
// again. If it has to be ended by force, the instance is disabled for good.
type Instance struct {
	program     *Program
	environment Environment // with defaults
	desk        *desk
	handlers    []registration
	tools       []Tool
	off         []atomic.Bool // by handler: the plugin does not want to hear any more
	drafts      []atomic.Bool // by handler: it changes the payload that it is given, so it gets its own
	ignored     []atomic.Bool // by handler: it returned a value to a listener, and someone was told

	turn    *turn  // who has it owns the engine and the desk
	engine  engine // nil if the next call must make one
	closing sync.Once
	closed  bool                         // guarded by the turn
	stops   int                          // guarded by the turn: deadlines that passed
	dead    atomic.Pointer[plugin.Error] // why it is disabled
}

// insideKey finds the instances that a context is inside of.
type insideKey struct{}

type inside struct {
	instance *Instance
	around   *inside
}

// enclose returns ctx for what the host does while code of the instance waits.
func (i *Instance) enclose(ctx context.Context) context.Context {
	around, _ := ctx.Value(insideKey{}).(*inside)
	return context.WithValue(ctx, insideKey{}, &inside{i, around})
}

// Open runs a program's register function and returns what it registered.
func Open(ctx context.Context, program *Program, environment Environment) (*Instance, error) {
	environment.Limits = environment.Limits.withDefaults()
	i := &Instance{program: program, environment: environment, turn: newTurn()}
	i.desk = &desk{instance: i, environment: environment, log: newJournal(environment.Log)}
	limit, err := i.within(ctx, environment.Limits.Start)
	if err != nil {
		return nil, err
	}
	i.off = make([]atomic.Bool, maxHandlers)
	i.drafts = make([]atomic.Bool, maxHandlers)
	i.ignored = make([]atomic.Bool, maxHandlers)
	i.desk.begin(ctx)
	if err := i.start(limit); err != nil {
		return nil, i.program.explain("register of plugin "+i.name(), limit, err)
	}
	i.handlers, i.tools = slices.Clone(i.desk.handlers), slices.Clone(i.desk.tools)
	return i, nil
}

// start makes an engine and has register called in it.
func (i *Instance) start(limit time.Duration) error {
	e, err := newEngine(i.desk, i.environment.Limits)
	if err != nil {
		return err
	}
	i.desk.handlers, i.desk.tools, i.desk.registering = nil, nil, true
	err = e.load(i.program, limit)
	i.desk.registering = false
	if err != nil {
		e.close()
		return err
	}
	i.engine = e
	return nil
}

// restart is start for a plugin that was stopped. It must register as before:
// its handlers are known to a bus by then.
func (i *Instance) restart(limit time.Duration) error {
	if err := i.start(limit); err != nil {
		return err
	}
	same := slices.EqualFunc(i.handlers, i.desk.handlers, func(a, b registration) bool { return a.Event == b.Event }) &&
		slices.EqualFunc(i.tools, i.desk.tools, func(a, b Tool) bool { return a.Name == b.Name })
	if !same {
		i.drop()
		return i.disable(plugin.Errorf(plugin.CodeDisabled, "plugin %s registered something else when it was started again after it had to be stopped; it is disabled for this agent until it is enabled again", i.name()))
	}
	return nil
}

// Err returns why the instance is disabled, nil as long as it is not. It stays
// so: open another one.
func (i *Instance) Err() error {
	if err := i.dead.Load(); err != nil {
		return err
	}
	return nil
}

// Close gives back all that the instance has, once a call that is inside has
// ended. It may be called again.
func (i *Instance) Close() {
	i.closing.Do(func() {
		i.turn.wait(context.Background(), 0)
		i.closed = true
		i.drop()
		i.turn.give()
	})
}

// enter waits for the turn and makes sure there is an engine. It returns how long
// the code may run.
func (i *Instance) enter(ctx context.Context, limit time.Duration) (time.Duration, error) {
	for in, _ := ctx.Value(insideKey{}).(*inside); in != nil; in = in.around {
		if in.instance == i {
			return 0, plugin.Errorf(plugin.CodeLimitExceeded, "plugin %s was called by itself, by way of the host: a plugin cannot enter itself", i.name())
		}
	}
	if !i.turn.try() && !i.turn.wait(ctx, i.environment.Limits.Wait) {
		if ctx.Err() != nil {
			return 0, plugin.AsError(context.Cause(ctx))
		}
		return 0, plugin.Errorf(plugin.CodeOverloaded, "plugin %s was busy with other events for %s: the event did not reach it", i.name(), i.environment.Limits.Wait)
	}
	limit, err := i.ready(ctx, limit)
	if err != nil {
		i.turn.give()
		return 0, err
	}
	i.desk.begin(ctx)
	return limit, nil
}

// ready makes sure that code can run.
func (i *Instance) ready(ctx context.Context, limit time.Duration) (time.Duration, error) {
	if i.closed {
		return 0, plugin.Errorf(plugin.CodeCancelled, "plugin %s has been closed", i.name())
	}
	if dead := i.dead.Load(); dead != nil {
		return 0, plugin.Errorf(plugin.CodeDisabled, "plugin %s is disabled for this agent until it is enabled again: %w", i.name(), dead)
	}
	if i.engine == nil {
		start, err := i.within(ctx, i.environment.Limits.Start)
		if err != nil {
			return 0, err
		}
		i.desk.begin(ctx)
		if err := i.restart(start); err != nil {
			return 0, i.failed("register of plugin "+i.name(), start, i.environment.Limits.Start, err)
		}
	}
	return i.within(ctx, limit)
}

// within returns the limit, or what ctx leaves of it.
func (i *Instance) within(ctx context.Context, limit time.Duration) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, plugin.AsError(context.Cause(ctx))
	}
	if deadline, has := ctx.Deadline(); has {
		limit = min(limit, time.Until(deadline))
	}
	return limit, nil
}

// leave gives the turn back.
func (i *Instance) leave() {
	i.desk.ctx = nil
	i.turn.give()
}

// failed tells what became of a call that might take limit, and of the engine
// with it. A plugin that passes its whole deadline again and again is disabled;
// one that its caller gave less is not to blame.
func (i *Instance) failed(what string, limit, whole time.Duration, err error) error {
	explained := i.program.explain(what, limit, err)
	var failed *crash
	switch {
	case errors.Is(err, errRevoked), errors.As(err, &failed):
		i.drop()
		i.disable(explained)
	case errors.Is(err, errStopped) && limit == whole:
		i.drop()
		if i.stops++; i.stops >= maxStops {
			return i.disable(plugin.Errorf(plugin.CodeTimeout, "%w; it was stopped %d times, so the plugin is disabled for this agent until it is enabled again", explained, i.stops))
		}
	case errors.Is(err, errStopped), errors.Is(err, errMemory):
		i.drop()
	}
	return explained
}

func (i *Instance) disable(err *plugin.Error) error {
	if i.dead.CompareAndSwap(nil, err) && i.environment.Disabled != nil {
		i.environment.Disabled(err)
	}
	return err
}

// drop closes the engine.
func (i *Instance) drop() {
	if i.engine != nil {
		i.engine.close()
		i.engine = nil
	}
}

func (i *Instance) name() string {
	if i.environment.Plugin == "" {
		return i.program.entry
	}
	return i.environment.Plugin
}

// about names a handler, for messages.
func (i *Instance) about(handler int) string {
	return fmt.Sprintf("handler %d of plugin %s for %s", handler+1, i.name(), i.handlers[handler].Event)
}
