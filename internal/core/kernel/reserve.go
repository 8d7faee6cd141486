package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/base/waitfor"
	"github.com/mortise-dev/mortise/plugin"
)

// reached reports whether the plugin may have seen the call, by what the runner
// says of it; known is false where it says nothing, and the code has to tell.
func reached(err error) (sent, known bool) {
	var said interface{ Sent() bool }
	if errors.As(err, &said) {
		return said.Sent(), true
	}
	switch plugin.CodeOf(err) {
	case plugin.CodeLaunchFailed, plugin.CodeHandshakeFailed, plugin.CodeProtocolVersionMismatch, plugin.CodeToolNotExposed,
		plugin.CodeCapabilityNotDeclared, plugin.CodeCapabilityNotAllowed, plugin.CodeUnavailable, plugin.CodeOverloaded, plugin.CodeDependencyMissing:
		return false, false
	}
	return true, false
}

// reserve has what runs the call be there before it is claimed, where another
// call of this host asked for it and holds what it has until this one ends.
func (a *attempt) reserve(ctx context.Context) (inside context.Context, release func(), err error) {
	runner, able := a.k.Runner.(Reserver)
	if !able || !waitfor.From(ctx).Nested() || a.phase == phaseGated || a.call.NoWait || a.call.Dry != nil {
		return ctx, func() {}, nil
	}
	began := time.Now()
	waiting, cancel := context.WithTimeoutCause(ctx, a.limit(), plugin.Errorf(plugin.CodeTimeout, "%s: no process was free within %s", a.target.Name(), a.limit()))
	defer cancel()
	with, release, err := runner.Reserve(waiting, a.target, a.handed())
	if err != nil {
		return ctx, func() {}, err
	}
	a.unused, a.waited = release, time.Since(began)
	return with(ctx), release, nil
}
