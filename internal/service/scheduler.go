package service

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/plugin"
)

const (
	schedulerName    = "scheduler"
	schedulerEnqueue = "scheduler.enqueue"
	scheduleWrite    = "schedule_write"

	// enqueueAhead is how far away the time of an operation may be.
	enqueueAhead = 366 * 24 * time.Hour
)

// enqueueTask records an operation that a worker runs later: one of the plugin's own or
// one that it declared under requires.tools. It is a call of its own with the same
// principal, judged now and again when it runs, and nested one deeper, so that nothing
// enqueues itself for ever.
func enqueueTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		Operation string          `json:"operation"`
		Params    json.RawMessage `json:"params"`
		RunAt     *string         `json:"run_at"`
	}
	if err := decode(schedulerEnqueue, args, &in); err != nil {
		return task{}, err
	}
	ref, known := g.enqueueable(in.Operation)
	if !known {
		return task{}, plugin.Errorf(plugin.CodeServiceDenied, "%s: %.120s is no operation of %s, nor declared under requires.tools", schedulerEnqueue, in.Operation, g.target.Manifest.Name)
	}
	var after time.Time
	if in.RunAt != nil {
		var err error
		if after, err = time.Parse(time.RFC3339, *in.RunAt); err != nil {
			return task{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: run_at %.60q is no time; write one such as 2026-03-01T09:00:00Z", schedulerEnqueue, *in.RunAt)
		}
		if time.Until(after) > enqueueAhead {
			return task{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: run_at %s is more than a year away", schedulerEnqueue, *in.RunAt)
		}
	}
	if g.call.Depth >= plugin.MaxDepth {
		return task{}, plugin.Errorf(plugin.CodeLimitExceeded, "%s: calls are nested %d deep already", schedulerEnqueue, plugin.MaxDepth)
	}
	overlay := g.call.Overlay
	if !strings.HasPrefix(ref, g.target.Manifest.Name+"/") { // what was decided for one plugin is not for another
		overlay = nil
	}
	var place string // by which the call is found again that an earlier attempt made
	stand := func(context.Context) (any, *plugin.Change, error) {
		if g.broker.Enqueue == nil {
			return nil, nil, errNothingLater()
		}
		what := map[string]any{"operation": ref, "params": jsontext.Value(orEmpty(in.Params))}
		summary := "run as soon as a host serves"
		if in.RunAt != nil {
			what["run_at"], summary = *in.RunAt, "run at "+*in.RunAt
		}
		return map[string]string{"id": uuid.Must(uuid.NewV7()).String()}, &plugin.Change{Target: ref, After: shown(what), Summary: summary}, nil
	}
	return task{class: Local, effect: scheduleWrite, dry: stand, repeat: func(key string) { place = "enqueue:" + key }, do: func(ctx context.Context) (any, error) {
		if g.broker.Enqueue == nil {
			return nil, errNothingLater()
		}
		if ctx.Err() != nil {
			return nil, notSent{context.Cause(ctx)}
		}
		res, err := g.broker.Enqueue(ctx, plugin.Call{
			Tenant: g.call.Tenant, Principal: g.call.Principal, Actor: g.actor(), Asker: g.call.Asker, Agent: g.call.Agent, Origin: plugin.OriginCall, Parent: g.call.ID,
			Session: g.call.Session, Depth: g.call.Depth + 1, Labels: plugin.Labels(g.call.Labels, g.Labels()), Operation: ref, Input: in.Params,
			Overlay: overlay, Files: g.call.Files, Place: place, Trace: g.call.Trace, NoWait: true, After: after,
			Fresh: true, // an earlier answer has no call that could be awaited
		})
		if err != nil && ctx.Err() != nil { // it may be recorded: another attempt finds it by its place
			return nil, unanswered{err}
		}
		if err != nil {
			return nil, err
		}
		return map[string]string{"id": res.CallID}, nil
	}}, nil
}

func errNothingLater() error {
	return plugin.Errorf(plugin.CodeUnavailable, "%s: this host runs nothing later", schedulerEnqueue)
}

// orEmpty is a call's input, which is an empty object where none is given.
func orEmpty(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage("{}")
	}
	return input
}

// enqueueable finds an operation that the plugin may have run later, and returns
// the reference to resolve.
func (g *grant) enqueueable(asked string) (ref string, known bool) {
	m := g.target.Manifest
	name, own := strings.CutPrefix(asked, m.Name+"/")
	if (own || !strings.Contains(asked, "/")) && m.Operation(name) != nil {
		return m.Name + "/" + name, true
	}
	return declaredTool(m.Requires.Tools, asked)
}
