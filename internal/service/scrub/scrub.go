// Package scrub takes secrets out of all that plugins say, before any other part of the
// host sees it.
package scrub

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A Runner is a runner that redacts secrets from all answers and output of
// plugins, before any other component sees them.
type Runner struct {
	kernel.Runner
	Scrubber *secret.Scrubber
}

// Run implements [kernel.Runner].
func (r Runner) Run(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (plugin.Result, error) {
	if call.Observe != nil {
		said := &speech{to: call.Observe, s: r.Scrubber}
		defer said.end()
		heard := *call
		heard.Observe = func(e plugin.Event) { said.hear(r.event(e)) }
		call = &heard
	}
	res, err := r.Runner.Run(ctx, t, call, services)
	return r.result(res), r.failure(err)
}

// Reserve implements [kernel.Reserver].
func (r Runner) Reserve(ctx context.Context, t *plugin.Target, call *plugin.Call) (with func(context.Context) context.Context, release func(), err error) {
	if runner, able := r.Runner.(kernel.Reserver); able {
		return runner.Reserve(ctx, t, call)
	}
	return func(ctx context.Context) context.Context { return ctx }, func() {}, nil
}

// Room implements [kernel.Roomy].
func (r Runner) Room(t *plugin.Target, call *plugin.Call) error {
	if runner, able := r.Runner.(kernel.Roomy); able {
		return runner.Room(t, call)
	}
	return nil
}

// Preview implements [kernel.Runner].
func (r Runner) Preview(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (json.RawMessage, error) {
	preview, err := r.Runner.Preview(ctx, t, call, services)
	return r.Scrubber.JSON(preview), r.failure(err)
}

// Reconcile implements [kernel.Runner].
func (r Runner) Reconcile(ctx context.Context, t *plugin.Target, call *plugin.Call, effects []protocol.Effect, services plugin.Services) (protocol.Reconciled, error) {
	found, err := r.Runner.Reconcile(ctx, t, call, effects, services)
	found.Data = jsontext.Value(r.Scrubber.JSON(json.RawMessage(found.Data)))
	found.Evidence = jsontext.Value(r.Scrubber.JSON(json.RawMessage(found.Evidence)))
	if found.Err != nil {
		found.Err = plugin.AsError(r.failure(found.Err))
	}
	return found, r.failure(err)
}

func (r Runner) event(e plugin.Event) plugin.Event {
	e.Message, e.Data = r.Scrubber.Text(e.Message), r.Scrubber.JSON(e.Data)
	return e
}

func (r Runner) result(res plugin.Result) plugin.Result {
	for _, raw := range []*json.RawMessage{&res.Data, &res.Diagnostics, &res.Details, &res.Outputs, &res.Skips, &res.Citations, &res.NextCursor, &res.Members} {
		*raw = r.Scrubber.JSON(*raw)
	}
	res.Summary, res.Message = r.Scrubber.Text(res.Summary), r.Scrubber.Text(res.Message)
	for name, value := range res.Metrics {
		if text, ok := value.(string); ok {
			res.Metrics[name] = r.Scrubber.Text(text)
		}
	}
	for i := range res.Artifacts {
		a := &res.Artifacts[i]
		a.Type, a.Name, a.Path = r.Scrubber.Text(a.Type), r.Scrubber.Text(a.Name), r.Scrubber.Text(a.Path)
	}
	if res.Nondeterminism != nil {
		own := *res.Nondeterminism
		own.Reasons = make([]string, len(res.Nondeterminism.Reasons))
		for i, reason := range res.Nondeterminism.Reasons {
			own.Reasons[i] = r.Scrubber.Text(reason)
		}
		res.Nondeterminism = &own
	}
	return res
}

// failure returns an error without secrets; its cause goes to the log, which is
// scrubbed too.
func (r Runner) failure(err error) error {
	if err == nil {
		return nil
	}
	failed := plugin.AsError(err)
	clean := *failed
	clean.Message, clean.PluginCode, clean.Details = r.Scrubber.Text(failed.Message), r.Scrubber.Text(failed.PluginCode), r.Scrubber.JSON(failed.Details)
	if clean.Message == failed.Message && clean.PluginCode == failed.PluginCode && string(clean.Details) == string(failed.Details) {
		return err
	}
	return &clean
}

// Hook returns the hook of a plugin, told of nothing that a secret is in, and
// scrubbed in what it says.
func (r Runner) Hook(s event.Subscription) event.Subscription {
	if listen := s.Listen; listen != nil {
		s.Listen = func(ctx context.Context, p *event.Payload) error {
			p, err := r.payload(p)
			if err == nil {
				err = listen(ctx, p)
			}
			return r.hookFailure(err)
		}
	}
	if transform := s.Transform; transform != nil {
		s.Transform = func(ctx context.Context, p *event.Payload) (*event.Payload, error) {
			told, err := r.payload(p)
			if err != nil {
				return nil, err
			}
			made, err := transform(ctx, told)
			if err != nil || made == nil || made.Text() == told.Text() {
				return nil, r.hookFailure(err)
			}
			return r.payload(made)
		}
	}
	if veto := s.Veto; veto != nil {
		s.Veto = func(ctx context.Context, p *event.Payload) (v event.Verdict, err error) {
			told, err := r.payload(p)
			if err != nil {
				return v, err
			}
			if v, err = veto(ctx, told); err != nil {
				return v, r.hookFailure(err)
			}
			v.Reason = r.Scrubber.Text(v.Reason)
			if v.Payload == nil || v.Payload.Text() == told.Text() {
				v.Payload = nil
				return v, nil
			}
			if told != p { // what it made of a mark would be carried out
				return event.Verdict{}, plugin.Errorf(plugin.CodeHookFailed, "%s rewrote a call that has a secret in it, which hooks are not told; it may refuse such a call, or let it be", s.Plugin)
			}
			v.Payload, err = r.payload(v.Payload)
			return v, err
		}
	}
	return s
}

// hookFailure is failure for what a hook threw, whatever it is.
func (r Runner) hookFailure(err error) error {
	if err = r.failure(err); err == nil {
		return nil
	}
	if text := err.Error(); r.Scrubber.Text(text) != text {
		return plugin.Errorf(plugin.CodeHookFailed, "%s", r.Scrubber.Text(text))
	}
	return err
}

// payload returns a payload without secrets: the same, where it has none.
func (r Runner) payload(p *event.Payload) (*event.Payload, error) {
	clean := r.Scrubber.JSON(json.RawMessage(p.Text()))
	if string(clean) == p.Text() {
		return p, nil
	}
	return event.NewPayload(string(clean))
}
