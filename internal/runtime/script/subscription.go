package script

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// Subscriptions returns the handlers that the plugin registered, ready for a bus.
// Deadlines are kept by the instance itself, so they name none.
func (i *Instance) Subscriptions() []event.Subscription {
	var all []event.Subscription
	for n, r := range i.handlers {
		s := event.Subscription{
			Event: r.Event, Plugin: i.environment.Plugin, Name: fmt.Sprintf("%s#%d", r.Event, n+1),
			Before: slices.Clone(r.Before), After: slices.Clone(r.After),
		}
		if r.Priority != nil {
			s.Priority = new(*r.Priority)
		}
		if r.FailureMode != nil {
			s.Mode, s.ModeSaid = event.Mode(*r.FailureMode), true
		}
		switch r.shape {
		case event.Transform:
			s.Transform = func(ctx context.Context, p *event.Payload) (*event.Payload, error) {
				a, err := i.handle(ctx, n, p)
				return a.payload, err
			}
		case event.Veto:
			s.Veto = func(ctx context.Context, p *event.Payload) (event.Verdict, error) {
				a, err := i.handle(ctx, n, p)
				return event.Verdict{Allow: a.allow, Reason: a.reason, Payload: a.payload}, err
			}
		default:
			s.Listen = func(ctx context.Context, p *event.Payload) error {
				_, err := i.handle(ctx, n, p)
				return err
			}
		}
		all = append(all, s)
	}
	return all
}

// handle calls a handler.
func (i *Instance) handle(ctx context.Context, handler int, p *event.Payload) (answer, error) {
	if i.off[handler].Load() {
		return answer{allow: true}, nil
	}
	r := &i.handlers[handler]
	limit, err := i.enter(ctx, r.deadline)
	if err != nil {
		return answer{}, err
	}
	defer i.leave()
	a, err := i.engine.handle(handler, r.shape, p, limit)
	if err != nil {
		return answer{}, i.failed(i.about(handler), limit, r.deadline, err)
	}
	return a, nil
}
