package app

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/kernel"
	"github.com/mortise-dev/mortise/internal/secret"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A scrubbing runner takes secrets out of all that plugins answer and say, before
// anybody else sees it.
type scrubbing struct {
	kernel.Runner
	s *secret.Scrubber
}

// Run implements [kernel.Runner].
func (r scrubbing) Run(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (plugin.Result, error) {
	heard := *call
	if call.Observe != nil {
		heard.Observe = func(e plugin.Event) { call.Observe(r.event(e)) }
	}
	res, err := r.Runner.Run(ctx, t, &heard, services)
	return r.result(res), r.failure(err)
}

// Preview implements [kernel.Runner].
func (r scrubbing) Preview(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (json.RawMessage, error) {
	preview, err := r.Runner.Preview(ctx, t, call, services)
	return r.s.JSON(preview), r.failure(err)
}

// Reconcile implements [kernel.Runner].
func (r scrubbing) Reconcile(ctx context.Context, t *plugin.Target, call *plugin.Call, effects []protocol.Effect, services plugin.Services) (protocol.Reconciled, error) {
	found, err := r.Runner.Reconcile(ctx, t, call, effects, services)
	found.Data = jsontext.Value(r.s.JSON(json.RawMessage(found.Data)))
	found.Evidence = jsontext.Value(r.s.JSON(json.RawMessage(found.Evidence)))
	if found.Err != nil {
		found.Err = plugin.AsError(r.failure(found.Err))
	}
	return found, r.failure(err)
}

func (r scrubbing) event(e plugin.Event) plugin.Event {
	e.Message, e.Data = r.s.Text(e.Message), r.s.JSON(e.Data)
	return e
}

func (r scrubbing) result(res plugin.Result) plugin.Result {
	for _, raw := range []*json.RawMessage{&res.Data, &res.Diagnostics, &res.Details, &res.Outputs, &res.Skips, &res.Citations, &res.NextCursor} {
		*raw = r.s.JSON(*raw)
	}
	res.Summary, res.Message = r.s.Text(res.Summary), r.s.Text(res.Message)
	for name, value := range res.Metrics {
		if text, ok := value.(string); ok {
			res.Metrics[name] = r.s.Text(text)
		}
	}
	for i := range res.Artifacts {
		a := &res.Artifacts[i]
		a.Type, a.Name, a.Path = r.s.Text(a.Type), r.s.Text(a.Name), r.s.Text(a.Path)
	}
	if res.Nondeterminism != nil {
		own := *res.Nondeterminism
		own.Reasons = make([]string, len(res.Nondeterminism.Reasons))
		for i, reason := range res.Nondeterminism.Reasons {
			own.Reasons[i] = r.s.Text(reason)
		}
		res.Nondeterminism = &own
	}
	return res
}

// failure returns an error without secrets; its cause goes to the log, which is
// scrubbed too.
func (r scrubbing) failure(err error) error {
	failed := plugin.AsError(err)
	if failed == nil {
		return err
	}
	clean := *failed
	clean.Message, clean.PluginCode, clean.Details = r.s.Text(failed.Message), r.s.Text(failed.PluginCode), r.s.JSON(failed.Details)
	if clean.Message == failed.Message && clean.PluginCode == failed.PluginCode && string(clean.Details) == string(failed.Details) {
		return err
	}
	return &clean
}
