package process

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// onceStarved is the time that the wait for the exit may grow by on a machine without a processor to spare.
const onceStarved = 10 * time.Second

// runOnce carries out one call by protocol 1: a process, a handshake, a
// request, a response, an exit.
func (r *Runner) runOnce(ctx context.Context, target *plugin.Target, call *plugin.Call) (plugin.Result, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return plugin.Result{}, unreached(err)
	}
	defer leave()
	l, err := r.program(ctx, target.Package, target.Manifest)
	if err != nil {
		return plugin.Result{}, unreached(err)
	}
	artifacts, _, err := r.artifacts(call)
	if err != nil {
		return plugin.Result{}, unreached(err)
	}
	if !reserved(ctx).takeSlot() {
		if err := r.reserve(); err != nil {
			return plugin.Result{}, unreached(err)
		}
	}
	l.name, l.data = target.Manifest.Name, artifacts
	c, err := r.launch(ctx, l, func(line string) {
		r.log(&group{manifest: target.Manifest}, call, "info", line, nil)
	})
	if err != nil {
		r.unreserve()
		return plugin.Result{}, unreached(err)
	}
	o := once{child: c, out: newOutbox(c.stdin), lines: protocol.NewLineReader(c.stdout, protocol.MaxFrame1), ctx: ctx}
	o.lines.Room = func(bytes int) func() { return budget.Line(bytes, c.exited, c.kill) }
	output, err := o.exchange(target, call)
	o.lines.Leave()
	r.work.Go(func() { // the clean-up need not delay the answer
		c.destroy()
		o.out.close()
		<-o.out.done
		r.unreserve()
	})
	if err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{Status: plugin.Succeeded, Data: []byte(output)}, nil
}

// once is the host's end of one process of protocol 1.
type once struct {
	child *child
	out   *outbox
	lines *protocol.LineReader
	ctx   context.Context
}

// exchange is the protocol, from the first line to the exit.
func (o *once) exchange(target *plugin.Target, call *plugin.Call) (jsontext.Value, error) {
	stop := context.AfterFunc(o.ctx, o.child.kill) // the read below then ends
	defer stop()
	want := bindingOf(target)
	if err := o.begin(want); err != nil {
		return nil, unreached(err)
	}
	o.child.tail.shaken.Store(true)

	// Core then sends one execute request line and expects one execute response line.
	var fields map[string]string
	if bound := target.Manifest.Runner.Binding; bound != nil {
		fields = bound.Context
	}
	o.send(protocol.AppendV1Request(nil, call.ID, want.Tool, fields, call.Input))
	o.out.close() // stdin ends once the request is written
	line, err := o.read("response", 0)
	if errors.Is(err, protocol.ErrLineTooLong) {
		err = plugin.Errorf(plugin.CodeMalformedResponse, "%s: the response is longer than %d bytes", o.child.name, protocol.MaxFrame1)
	}
	if err != nil {
		return nil, unanswered(err)
	}
	output, failure := protocol.CheckResponse(line, call.ID)
	if failure != nil && failure.Code == plugin.CodePluginError {
		return nil, failure // its own error, in its own words, counts whatever its exit says
	}
	if failure != nil {
		return nil, unanswered(named(o.child.name, failure))
	}
	return output, unanswered(o.finish())
}

// begin is the handshake.
func (o *once) begin(want protocol.Binding) error {
	// Core expects exactly one handshake response line after startup.
	o.send(protocol.AppendHandshake(nil, want.ProtocolVersion))
	line, err := o.read("handshake", o.child.graces.onceHandshake)
	if errors.Is(err, protocol.ErrLineTooLong) {
		return plugin.Errorf(plugin.CodeHandshakeFailed, "%s: the first line is longer than %d bytes", o.child.name, protocol.MaxFrame1)
	}
	if err != nil {
		return err
	}
	if refused := protocol.CheckHandshake(line, want); refused != nil {
		return named(o.child.name, refused)
	}
	return nil
}

// finish waits for the exit that belongs to an ok answer.
func (o *once) finish() error {
	begun, before, onceExit := time.Now(), starved(), o.child.graces.onceExit
	deadline := begun.Add(onceExit)
	for {
		o.child.setReadDeadline(deadline)
		_, err := o.lines.ReadLine()
		if err == nil || errors.Is(err, protocol.ErrLineTooLong) {
			return plugin.Errorf(plugin.CodeMalformedResponse, "%s: the response was followed by more output", o.child.name)
		}
		if o.child.waitExit(time.Until(deadline)) {
			break
		}
		// Time in which processes waited for a processor is not the plugin's.
		later := begun.Add(onceExit + min(starved()-before, onceStarved))
		if o.ctx.Err() != nil || later.Sub(deadline) < time.Millisecond {
			return plugin.Errorf(plugin.CodeCrashed, "%s: the plugin answered and did not exit within %s", o.child.name, onceExit)
		}
		deadline = later
	}
	if !o.child.exitOK() {
		return o.child.crashed("the plugin answered and then failed")
	}
	return nil
}

// starved returns for how long in all some process of this machine has waited for a processor, 0 where the kernel does
// not tell.
func starved() time.Duration {
	raw, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	_, total, _ := strings.Cut(line, "total=")
	micros, _ := strconv.ParseInt(total, 10, 64)
	return time.Duration(micros) * time.Microsecond
}

func (o *once) send(line []byte) {
	if b, err := o.out.begin(); err == nil {
		o.out.commit(append(b, line...), true)
	}
}

// read returns the next line, or why there is none. A limit of 0 leaves only
// the deadline of the call.
func (o *once) read(what string, limit time.Duration) ([]byte, error) {
	deadline, _ := o.ctx.Deadline()
	if own := time.Now().Add(limit); limit > 0 && (deadline.IsZero() || own.Before(deadline)) {
		deadline = own
	}
	o.child.setReadDeadline(deadline)
	line, err := o.lines.ReadLine()
	switch {
	case err == nil || errors.Is(err, protocol.ErrLineTooLong):
		return line, err
	case o.ctx.Err() != nil:
		return nil, plugin.AsError(context.Cause(o.ctx))
	case errors.Is(err, os.ErrDeadlineExceeded) && limit == 0 && !o.child.waitExit(0):
		<-o.ctx.Done() // the deadline was the call's own: it says so itself in this moment
		return nil, plugin.AsError(context.Cause(o.ctx))
	case errors.Is(err, os.ErrDeadlineExceeded) && !o.child.waitExit(0):
		return nil, plugin.Errorf(plugin.CodeTimeout, "%s: no %s within %s", o.child.name, what, limit)
	default:
		return nil, o.child.crashed("the plugin ended without its " + what)
	}
}

// unknownVersion is what a manifest has whose version no one said.
const unknownVersion = "0.0.0"

// bindingOf returns what is expected of the plugin's handshake.
func bindingOf(target *plugin.Target) protocol.Binding {
	b := protocol.Binding{
		PluginID:        target.Manifest.Name,
		ProtocolVersion: protocol.RuntimeVersion,
		Tool:            target.Operation.Name,
	}
	if target.Manifest.Version != unknownVersion {
		b.Version = target.Manifest.Version
	}
	if bound := target.Manifest.Runner.Binding; bound != nil {
		b.ProtocolVersion, b.Capabilities = bound.ProtocolVersion, bound.Capabilities
	}
	return b
}

// named puts the plugin's name before the message.
func named(name string, e *plugin.Error) *plugin.Error {
	copied := *e // it may be the cause of a context, which others read
	if !strings.HasPrefix(copied.Message, name+": ") {
		copied.Message = name + ": " + copied.Message
	}
	return &copied
}
