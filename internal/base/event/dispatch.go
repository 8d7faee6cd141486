package event

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// Emit calls the handlers of a listener. The error is that of a handler in the
// mode fail, or says that the event cannot be emitted so, or that ctx ended while
// a handler heeded it. With no handler nothing is done.
func (b *Bus) Emit(ctx context.Context, event string, p *Payload) error {
	slot, handlers, err := b.dispatch(event, emits, p)
	if len(handlers) == 0 {
		return err
	}
	inner, err := b.deeper(ctx, event)
	if err != nil {
		return err
	}
	return b.listen(inner, slot, handlers, p)
}

// Transform calls the handlers of a transform, each with what the one before it
// returned, and returns what the last did: p itself, if no handler changed it.
// The error is as for Emit.
func (b *Bus) Transform(ctx context.Context, event string, p *Payload) (*Payload, error) {
	slot, handlers, err := b.dispatch(event, transforms, p)
	if len(handlers) == 0 {
		return p, err
	}
	inner, err := b.deeper(ctx, event)
	if err != nil {
		return nil, err
	}
	v := view{payload: p}
	for asked := handlers; len(handlers) > 0; handlers, asked, err = slot.arrived(asked) {
		for i := 0; i < len(handlers); {
			n, err := b.transforms(inner, slot, handlers[i:], &v)
			if i += n; err != nil {
				if _, err = b.failed(inner, handlers[i-1], err); err != nil {
					return nil, err
				}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if b.closed.Load() {
		return nil, closed(b.agent)
	}
	return v.payload, nil
}

// Veto calls the handlers of a veto until one refuses. Each sees what the ones
// before it made of the payload. A handler that fails in the mode skip counts as
// allowing, and stands in Verdict.Failed: whether its word can be done without is
// for the caller to say. The error is as for Emit.
func (b *Bus) Veto(ctx context.Context, event string, p *Payload) (Verdict, error) {
	slot, handlers, err := b.dispatch(event, vetoes, p)
	if len(handlers) == 0 {
		return Verdict{Allow: err == nil}, err
	}
	inner, err := b.deeper(ctx, event)
	if err != nil {
		return Verdict{}, err
	}
	v := view{payload: p}
	var failures []Failure
	made := func() *Payload {
		if v.payload == p {
			return nil
		}
		return v.payload
	}
	for asked := handlers; len(handlers) > 0; handlers, asked, err = slot.arrived(asked) {
		for i := 0; i < len(handlers); {
			n, said, err := b.vetoes(inner, slot, handlers[i:], &v)
			if i += n; err != nil {
				f, err := b.failed(inner, handlers[i-1], err)
				failures = append(failures, f)
				if err != nil {
					return Verdict{Payload: made(), Failed: failures}, err
				}
				continue
			}
			if !said.Allow {
				return Verdict{Reason: cut(said.Reason, maxReason), Payload: made(), By: nameOf(handlers[i-1].Plugin), Failed: failures}, nil
			}
		}
	}
	if err != nil {
		return Verdict{Payload: made(), Failed: failures}, err
	}
	if b.closed.Load() {
		return Verdict{Payload: made(), Failed: failures}, closed(b.agent)
	}
	return Verdict{Allow: true, Payload: made(), Failed: failures}, nil
}

// maxArrivals bounds how many handlers one dispatch asks that came while it ran.
const maxArrivals = 1000

// arrived returns the handlers of plugins whose handler went away while a dispatch ran: a
// plugin that was given another version has a new one there before the old one goes, and
// is asked in its place. all are those that were asked, with the new ones.
func (s *slot) arrived(asked []*handler) (handlers, all []*handler, err error) {
	now := *s.family.handlers.Load()
	if len(now) == len(asked) && (len(now) == 0 || &now[0] == &asked[0]) {
		return nil, asked, nil // nothing changed
	}
	known, replaced := make(map[*handler]bool, len(asked)), map[string]bool{}
	for _, h := range asked {
		if known[h] = true; h.gone.Load() {
			replaced[h.Plugin] = true
		}
	}
	for _, h := range now {
		if replaced[h.Plugin] && !known[h] {
			handlers = append(handlers, h)
		}
	}
	if len(asked)+len(handlers) > MaxHandlers+maxArrivals {
		return nil, asked, plugin.Errorf(plugin.CodeUnavailable, "the plugins of the agent are replaced faster than %s can ask them; try again", s.event.Name)
	}
	return handlers, append(slices.Clip(asked), handlers...), nil
}

// dispatch looks up an event that is to be emitted in one way, and its
// handlers: none, where it cannot be emitted so.
func (b *Bus) dispatch(event string, way way, p *Payload) (*slot, []*handler, error) {
	slot := b.slots.find(event)
	if slot == nil || slot.way != way || b.closed.Load() {
		return nil, nil, b.refuse(event, way)
	}
	handlers := *slot.family.handlers.Load()
	if len(handlers) > 0 && p == nil {
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s has handlers and no payload", event)
	}
	return slot, handlers, nil
}

// refuse says why an event cannot be emitted in one way.
func (b *Bus) refuse(event string, way way) error {
	slot, err := b.slot(event)
	switch {
	case err != nil:
		return err
	case slot.way != way:
		return plugin.Errorf(plugin.CodeInvalidInput, "%s is a %s: use %s, not %s", event, slot.event.Shape, slot.way, way)
	default:
		return closed(b.agent)
	}
}

// listen calls the handlers of a listener.
func (b *Bus) listen(ctx *nested, slot *slot, handlers []*handler, p *Payload) error {
	v := view{payload: p}
	for i := 0; i < len(handlers); {
		n, err := b.listeners(ctx, slot, handlers[i:], &v)
		if i += n; err != nil {
			if _, err = b.failed(ctx, handlers[i-1], err); err != nil {
				return err
			}
		}
	}
	return nil
}

// The three below call handlers until one fails, which a panic is too, and say
// how many they have dealt with: one deferred recover for all of them.

func (b *Bus) listeners(ctx *nested, slot *slot, handlers []*handler, v *view) (n int, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
	}()
	for _, h := range handlers {
		n++
		if h.gone.Load() {
			continue
		}
		if h.direct == slot {
			err = h.Listen(ctx, v.payload)
		} else {
			err = b.listener(ctx, slot, h, v)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (b *Bus) transforms(ctx *nested, slot *slot, handlers []*handler, v *view) (n int, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
	}()
	for _, h := range handlers {
		n++
		if h.gone.Load() {
			continue
		}
		var next *Payload
		if h.direct == slot {
			if next, err = h.Transform(ctx, v.payload); err == nil && next != nil && next != v.payload {
				err = slot.event.fits(v.payload, next)
			}
		} else {
			next, err = b.transform(ctx, slot, h, v)
		}
		if err != nil {
			return n, err
		}
		if next != nil {
			v.payload = next
		}
	}
	return n, nil
}

// vetoes also ends with a handler that refuses; only then is said no allowance.
func (b *Bus) vetoes(ctx *nested, slot *slot, handlers []*handler, v *view) (n int, said Verdict, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
	}()
	said.Allow = true // where the last of them is gone
	for _, h := range handlers {
		n++
		if h.gone.Load() {
			continue
		}
		if h.direct == slot {
			if said, err = h.Veto(ctx, v.payload); err == nil && said.Allow && said.Payload != nil && said.Payload != v.payload {
				err = slot.event.fits(v.payload, said.Payload)
			}
		} else {
			said, err = b.veto(ctx, slot, h, v)
		}
		if err != nil || !said.Allow {
			return n, said, err
		}
		if said.Payload != nil {
			v.payload = said.Payload
		}
	}
	return n, said, nil
}

// The three below call a handler of another version, or one with a deadline.

func (b *Bus) listener(ctx context.Context, slot *slot, h *handler, v *view) error {
	p, err := v.in(slot, h.place)
	if err != nil {
		return err
	}
	if h.Deadline == 0 {
		return h.Listen(ctx, p)
	}
	_, err = timed(ctx, b, h, func(ctx context.Context) (struct{}, error) { return struct{}{}, h.Listen(ctx, p) })
	return err
}

func (b *Bus) transform(ctx context.Context, slot *slot, h *handler, v *view) (next *Payload, err error) {
	place := h.place
	p, err := v.in(slot, place)
	if err != nil {
		return nil, err
	}
	if h.Deadline == 0 {
		next, err = h.Transform(ctx, p)
	} else {
		next, err = timed(ctx, b, h, func(ctx context.Context) (*Payload, error) { return h.Transform(ctx, p) })
	}
	if err != nil || next == nil || next == p {
		return nil, err
	}
	if err := slot.family.versions[place].fits(p, next); err != nil {
		return nil, err
	}
	return v.back(slot, place, next)
}

func (b *Bus) veto(ctx context.Context, slot *slot, h *handler, v *view) (said Verdict, err error) {
	place := h.place
	p, err := v.in(slot, place)
	if err != nil {
		return said, err
	}
	if h.Deadline == 0 {
		said, err = h.Veto(ctx, p)
	} else {
		said, err = timed(ctx, b, h, func(ctx context.Context) (Verdict, error) { return h.Veto(ctx, p) })
	}
	switch {
	case err != nil || !said.Allow:
	case said.Payload == p:
		said.Payload = nil
	case said.Payload != nil:
		if err := slot.family.versions[place].fits(p, said.Payload); err != nil {
			return said, err
		}
		said.Payload, err = v.back(slot, place, said.Payload)
	}
	return said, err
}
