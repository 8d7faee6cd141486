package toolset

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// hookDeadline is how long the hook of a process may take where the plugin does
// not say. A process has to be started at times.
const hookDeadline = 5 * time.Second

// processHooks are the hooks of a plugin that runs as a process, as one agent has
// them. The processes are the runner's, and serve its calls too.
type processHooks struct {
	t      *Toolset
	of     agent.Owner
	target *plugin.Target
}

var _ agent.Handlers = processHooks{}

// Subscriptions implements [agent.Handlers].
func (h processHooks) Subscriptions() []event.Subscription {
	var all []event.Subscription
	for _, said := range h.target.Manifest.Hooks {
		e, found := event.Find(said.Event)
		if !found { // its manifest was read by a host that had it
			continue
		}
		all = append(all, h.subscription(e, said))
	}
	return all
}

// subscription returns a handler of an event that asks the plugin.
func (h processHooks) subscription(e *event.Event, said plugin.Hook) event.Subscription {
	s := event.Subscription{
		Event: e.Name, Plugin: h.target.Manifest.Name, Priority: new(said.Priority),
		Mode: event.Mode(said.FailureMode), ModeSaid: said.FailureMode != "",
		Deadline: said.Deadline, Before: said.Before, After: said.After,
	}
	if s.Deadline == 0 {
		s.Deadline = hookDeadline
	}
	switch e.Shape {
	case event.Listener:
		s.Listen = func(ctx context.Context, p *event.Payload) error {
			_, err := h.ask(ctx, e, p)
			return err
		}
	case event.Transform:
		s.Transform = func(ctx context.Context, p *event.Payload) (*event.Payload, error) {
			v, err := h.ask(ctx, e, p)
			return v.Payload, err
		}
	case event.Veto:
		s.Veto = func(ctx context.Context, p *event.Payload) (event.Verdict, error) { return h.ask(ctx, e, p) }
	}
	return s
}

// ask tells the plugin of an event, and returns what it says. Secrets are taken
// out where hooks join a bus (agent.Options.Clean).
func (h processHooks) ask(ctx context.Context, e *event.Event, p *event.Payload) (v event.Verdict, err error) {
	of := process.HookScope{Tenant: h.of.Tenant, Agent: h.of.Agent, Session: agent.SceneOf(ctx).Session}
	answer, err := h.t.Runner.Hook(ctx, h.target, of, e.Name, string(e.Shape), p.Text())
	if err != nil {
		return v, err
	}
	said, err := protocol.ParseHooked(string(e.Shape), json.RawMessage(answer))
	if err != nil {
		return v, plugin.Errorf(plugin.CodeMalformedResponse, "%s: %s: %w", h.target.Manifest.Name, e.Name, err)
	}
	v.Allow, v.Reason = said.Allow, said.Reason
	if said.Payload != nil && said.Allow {
		v.Payload, err = event.NewPayload(string(said.Payload))
	}
	return v, err
}

// Close implements [agent.Handlers]. Idle processes end on their own.
func (h processHooks) Close() error { return nil }
