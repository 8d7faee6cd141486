package process_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

// Whether the plugin may have had a call is in the error of each that has no
// answer, in either protocol: whatever its code, it tells if the call may have
// had an effect.
func TestAnErrorSaysWhetherThePluginHadTheCall(t *testing.T) {
	t.Parallel()
	want := func(what string, err error, code plugin.Code, sent bool) {
		t.Helper()
		var said interface{ Sent() bool }
		if plugin.CodeOf(err) != code || !errors.As(err, &said) || said.Sent() != sent {
			t.Errorf("%s: %v, and the error says of it %v; want %s, sent %t", what, err, said, code, sent)
		}
	}
	soon := func(r *process.Runner, target *plugin.Target, input string) error {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, plugin.Errorf(plugin.CodeTimeout, "it took too long"))
		defer cancel()
		_, err := r.Run(ctx, target, call(input), nil)
		return err
	}
	r := newRunner(t, process.Options{PerTenant: 1})
	pidOf(t, r, "good")

	late := plugin.Errorf(plugin.CodeTimeout, "it took too long")
	tooLong, expire := context.WithCancelCause(t.Context())
	slow := call(`{"ms":3600000}`)
	slow.Observe = func(plugin.Event) { expire(late) } // it has begun
	_, err := r.Run(tooLong, target("good", "nap"), slow, nil)
	want("it takes too long", err, plugin.CodeTimeout, true)
	busy, begun := make(chan error, 1), make(chan struct{}, 1)
	ctx, release := context.WithCancelCause(t.Context())
	go func() {
		_, err := r.Run(ctx, target("serial", "nap"), beginning(call(`{"ms":3600000}`), begun), nil)
		busy <- err
	}()
	<-begun
	want("no process is free", soon(r, target("serial", "echo"), `1`), plugin.CodeTimeout, false)
	release(late)
	want("a process is taken from a call", <-busy, plugin.CodeTimeout, true)
	_, err = run(t, r, target("good", "exit"), call(`{"status":7}`))
	want("it crashes", err, plugin.CodeCrashed, true)
	_, err = run(t, r, target("opens/exits", "echo"), call(`1`))
	want("it ends before its handshake", err, plugin.CodeCrashed, false)
	_, err = run(t, r, bound("v1/opens not json"), call(`{}`))
	want("version 1, no handshake", err, plugin.CodeHandshakeFailed, false)
	_, err = run(t, r, bound("v1/answers not json", "tool.execute"), call(`{}`))
	want("version 1, no answer", err, plugin.CodeMalformedResponse, true)
	broken := newRunner(t, process.Options{Command: func(context.Context, plugin.Package, *plugin.Manifest) ([]string, error) {
		return []string{"/nowhere/at/all"}, nil
	}})
	_, err = run(t, broken, target("good", "echo"), call(`1`))
	want("there is no program", err, plugin.CodeLaunchFailed, false)
	_, err = run(t, broken, bound("v1/good"), call(`{}`))
	want("version 1, there is no program", err, plugin.CodeLaunchFailed, false)

	full := newRunner(t, process.Options{MaxProcesses: 1})
	held, begun := make(chan error, 1), make(chan struct{})
	go func() {
		c := call(`{"ms":60000}`)
		c.Session = "a"
		c.Observe = func(plugin.Event) { close(begun) }
		_, err := run(t, full, target("good", "deaf", isolated(plugin.IsolationSession)), c)
		held <- err
	}()
	<-begun
	c := call(`1`)
	c.Session = "b"
	_, err = run(t, full, target("good", "echo", isolated(plugin.IsolationSession)), c)
	want("the host is full", err, plugin.CodeOverloaded, false)
	_, err = run(t, full, bound("v1/good"), call(`{}`))
	want("version 1, the host is full", err, plugin.CodeOverloaded, false)
	if err := full.Close(); err != nil {
		t.Error(err)
	}
	want("the host closes", <-held, plugin.CodeUnavailable, true)
	_, err = run(t, full, target("good", "echo"), call(`1`))
	want("the host is closed", err, plugin.CodeUnavailable, false)
	_, err = run(t, full, bound("v1/good"), call(`{}`))
	want("version 1, the host is closed", err, plugin.CodeUnavailable, false)
}
