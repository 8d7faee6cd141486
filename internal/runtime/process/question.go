package process

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Preview asks what a call would do, without its being done: services are to be
// ones that only read. An operation whose code has no preview is tool_not_exposed,
// a preview that is too long output_too_large; everything else is as for [Runner.Run].
func (r *Runner) Preview(ctx context.Context, target *plugin.Target, call *plugin.Call, services plugin.Services) (json.RawMessage, error) {
	if target.Manifest.Runner.Protocol == protocol.Version1 {
		return nil, unasked(target, protocol.MethodPreview)
	}
	return work(ctx, r, target, call, func(w *worker) (json.RawMessage, bool, error) {
		return w.preview(ctx, target, call, services)
	})
}

// preview asks the plugin for one. held is as for execute.
func (c *conn) preview(ctx context.Context, target *plugin.Target, call *plugin.Call, services plugin.Services) (preview json.RawMessage, held bool, err error) {
	result, held, err := c.ask(ctx, protocol.AppendPreview, target, call, services)
	if err != nil {
		return nil, held, known(target, protocol.MethodPreview, err)
	}
	shown, err := protocol.ParsePreview(result)
	if err != nil {
		return nil, false, c.judge(protocol.MethodPreview, err)
	}
	return json.RawMessage(shown), false, nil
}

// Reconcile asks how an earlier run of the call ended, of which effects are known.
// Errors are as for [Runner.Preview]; after an error the outcome is as unknown as
// before.
func (r *Runner) Reconcile(ctx context.Context, target *plugin.Target, call *plugin.Call, effects []protocol.Effect, services plugin.Services) (protocol.Reconciled, error) {
	if target.Manifest.Runner.Protocol == protocol.Version1 {
		return protocol.Reconciled{}, unasked(target, protocol.MethodReconcile)
	}
	return work(ctx, r, target, call, func(w *worker) (protocol.Reconciled, bool, error) {
		return w.reconcile(ctx, target, call, effects, services, r.opts.FrameBytes)
	})
}

// reconcile asks the plugin in a line of at most limit bytes. held is as for execute.
func (c *conn) reconcile(ctx context.Context, target *plugin.Target, call *plugin.Call, effects []protocol.Effect, services plugin.Services, limit int) (found protocol.Reconciled, held bool, err error) {
	spell := func(b []byte, id int64, token, operation string, input []byte, call *plugin.Call, deadlineMS int64) []byte {
		return protocol.AppendReconcile(b, id, token, operation, input, call, deadlineMS, effects, limit)
	}
	if n := len(spell(nil, 1<<53, randomToken(), target.Name(), protocol.Line(call.Input), call, 1<<53)); n > limit {
		return found, false, plugin.Errorf(plugin.CodeLimitExceeded, "%s: the input and %d effects of the call have %d bytes, and a line holds at most %d: a person has to say how it ended", target.Name(), len(effects), n, limit)
	}
	result, held, err := c.ask(ctx, spell, target, call, services)
	if err != nil {
		return found, held, known(target, protocol.MethodReconcile, err)
	}
	if found, err = protocol.ParseReconciled(result); err != nil {
		return protocol.Reconciled{}, false, c.judge(protocol.MethodReconcile, err)
	}
	return found, false, nil
}

// judge returns why an answer does not count: too much of it fails the call, and
// what is no answer at all ends the connection too.
func (c *conn) judge(method string, why error) error {
	var tooLarge *plugin.Error
	if errors.As(why, &tooLarge) {
		return named(c.name, tooLarge)
	}
	return c.broken(method, why)
}

// known gives the answer "no such method" its own code: the manifest offers
// something that the code does not have.
func known(target *plugin.Target, method string, err error) error {
	if unknownMethod(err) {
		return unasked(target, method)
	}
	return err
}

// unknownMethod reports whether a plugin answered that it does not know what it
// was asked.
func unknownMethod(err error) bool {
	var e *plugin.Error
	return errors.As(err, &e) && e.Code == plugin.CodePluginError && e.PluginCode == strconv.Itoa(protocol.RPCMethodNotFound)
}

func unasked(target *plugin.Target, method string) error {
	return plugin.Errorf(plugin.CodeToolNotExposed, "%s: the manifest offers %s and the code has none: add the function, or take %s out of the manifest", target.Name(), method, method)
}
