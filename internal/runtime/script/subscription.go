package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
	drafts := &i.drafts[handler]
	draft := drafts.Load() && survives(p)
	a, err := i.engine.handle(handler, r.shape, p, draft, limit)
	if r.shape == event.Transform && !draft && writes(err) && survives(p) {
		drafts.Store(true)
		a, err = i.engine.handle(handler, r.shape, p, true, limit)
	}
	if err != nil {
		return answer{}, i.failed(i.about(handler), limit, r.deadline, err)
	}
	if a.dropped != "" && i.ignored[handler].CompareAndSwap(false, true) {
		i.ignore(i.about(handler) + " returned " + a.dropped + ", which is ignored: " + listenerForm)
	}
	return a, nil
}

// listenerForm says what an author does who meant a listener to change something.
const listenerForm = "a listener changes nothing; what a tool returned is changed in model.before@v1 (messages[].toolResults)"

// ignore tells of a value that a listener returned.
func (i *Instance) ignore(what string) {
	if i.environment.Ignored != nil {
		i.environment.Ignored(what)
		return
	}
	i.desk.log.write("warn", what, nil)
}

// writes reports whether a handler failed because it changed what is frozen. Published
// transforms do that with their payload: such a handler is called again, with a payload of its
// own, and gets one of its own from then on. No other handler pays for that.
func writes(err error) bool {
	var t *thrown
	if !errors.As(err, &t) || t.name != "TypeError" {
		return false
	}
	for _, refusal := range []string{frozenPayload, "is read-only", "object is not extensible", "could not delete property"} {
		if strings.Contains(t.message, refusal) {
			return true
		}
	}
	return false
}

// survives reports whether a payload is the same once it was an object of JavaScript, in which
// numbers have 53 bits.
func survives(p *event.Payload) bool {
	d := jsontext.NewDecoder(strings.NewReader(p.Text()))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return err == io.EOF
		}
		if token.Kind() == '0' && len(token.String()) > 15 {
			return false
		}
	}
}

// frozenPayload is what code reads that changes a payload.
const frozenPayload = "a payload is frozen: return a new one"
