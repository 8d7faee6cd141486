package process

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A HookScope is where an event takes place. It says, with the isolation of the
// plugin, which process hears of it.
type HookScope struct {
	Tenant, Agent string
	Session       string // "" outside any
}

// Hook tells the plugin of an event, in the process that would serve a call of
// the same agent and session, and returns the result member of its answer, which
// fits the shape: see [protocol.ParseHooked]. payload is one JSON object.
//
// It comes back when ctx ends, with a timeout where the time was up; a plugin
// that goes on working is ended as one that does so on a call. An event that the
// code does not hear is tool_not_exposed, a payload that no line holds
// input_too_large; everything else is as for [Runner.Run]. No services are
// available to a hook.
func (r *Runner) Hook(ctx context.Context, t *plugin.Target, of HookScope, event, shape, payload string) (jsontext.Value, error) {
	// It is asked like an operation that has the event's name.
	target := &plugin.Target{Manifest: t.Manifest, Package: t.Package, Operation: &plugin.Operation{Name: event}}
	if t.Manifest.Runner.Protocol == protocol.Version1 {
		return nil, unheard(target)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.graces.hook)
		defer cancel()
	}
	line := protocol.Line([]byte(payload))
	call := &plugin.Call{Tenant: of.Tenant, Agent: of.Agent, Session: of.Session}
	around := len(protocol.AppendHook(nil, 1<<53, randomToken(), event, shape, nil, call, 1<<53))
	if n := around + len(line); n > r.opts.FrameBytes {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "%s: the request of the hook has %d bytes, and a line holds at most %d", target.Name(), n, r.opts.FrameBytes)
	}
	answer, err := work(ctx, r, target, call, func(w *worker) (jsontext.Value, bool, error) {
		return w.hook(ctx, target, call, shape, line)
	})
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		err = plugin.Errorf(plugin.CodeTimeout, "%s: the plugin did not answer the hook in time: %w", target.Name(), context.DeadlineExceeded)
	}
	return answer, err
}

// hook asks the plugin. held is as for execute.
func (c *conn) hook(ctx context.Context, target *plugin.Target, call *plugin.Call, shape string, payload []byte) (answer jsontext.Value, held bool, err error) {
	spell := func(b []byte, id int64, token, _ string, _ []byte, call *plugin.Call, deadlineMS int64) []byte {
		return protocol.AppendHook(b, id, token, target.Operation.Name, shape, payload, call, deadlineMS)
	}
	answer, held, err = c.ask(ctx, spell, target, call, unserved{})
	if err != nil {
		if unknownMethod(err) {
			err = unheard(target)
		}
		return nil, held, err
	}
	if _, err := protocol.ParseHooked(shape, answer); err != nil {
		return nil, false, c.broken(protocol.MethodHook, err)
	}
	return answer, false, nil
}

func unheard(target *plugin.Target) error {
	return plugin.Errorf(plugin.CodeToolNotExposed, "%s: the manifest says that the plugin hears %s, and its code has no hook for it: add the function, or take the hook out of the manifest", target.Manifest.Name, target.Operation.Name)
}

// unserved are the services of a hook: none.
type unserved struct{}

func (unserved) Serve(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s: services are not available in hooks; call them from an operation", cut(method, 120))
}
