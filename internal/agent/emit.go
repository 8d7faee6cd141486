package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// fields are what an event carries.
type fields map[string]any

// payload returns fields as an event carries them, with those common to all
// events. It returns nil if the event has no listener.
func (i *Instance) payload(name string, f fields) (*event.Payload, error) {
	if !i.bus.Heard(name) {
		if i.closed.Load() { // an unheard event must not pass for an allowance
			return nil, i.gone()
		}
		return nil, nil
	}
	all := fields{"at": i.agents.Now().UTC().Format(time.RFC3339Nano)}
	if name != event.PluginError {
		all["agentId"] = i.key.Agent
	}
	e, _ := event.Find(name)
	for k, v := range f {
		optional := slices.ContainsFunc(e.Fields, func(f event.Field) bool { return f.Name == k && f.Optional })
		if v != nil && (v != "" || !optional) {
			all[k] = v
		}
	}
	p, err := event.Encode(all)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeLimitExceeded, "the event %s cannot be told: %w", name, err)
	}
	return p, nil
}

// emit tells listeners. The error is of one whose failure ends the turn.
func (i *Instance) emit(ctx context.Context, name string, f fields) error {
	p, err := i.payload(name, f)
	if p == nil || err != nil {
		return err
	}
	return failed(ctx, i.bus.Emit(ctx, name, p))
}

// hearTime is how long listeners have, all together, to hear of what happened.
const hearTime = time.Minute

// happened is emit for what cannot be undone: listeners hear of it also after
// the caller has gone.
func (i *Instance) happened(ctx context.Context, name string, f fields) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), hearTime,
		plugin.Errorf(plugin.CodeTimeout, "the plugins of agent %s took longer than %s to hear of %s", i.key.Agent, hearTime, name))
	defer cancel()
	return i.emit(ctx, name, f)
}

// transform lets hooks rewrite an event, and returns what they made of it; nil
// where that is what it was.
func (i *Instance) transform(ctx context.Context, name string, f fields) (*event.Payload, error) {
	p, err := i.payload(name, f)
	if p == nil || err != nil {
		return nil, err
	}
	made, err := i.bus.Transform(ctx, name, p)
	if err != nil {
		return nil, failed(ctx, err)
	}
	if made == p {
		return nil, nil
	}
	return made, nil
}

// rewritten lets hooks rewrite one text of an event.
func (i *Instance) rewritten(ctx context.Context, name, member string, f fields) (string, error) {
	was, _ := f[member].(string)
	p, err := i.transform(ctx, name, f)
	if p == nil || err != nil {
		return was, err
	}
	if raw, found := p.Field(member); !found || raw[0] != '"' {
		return was, plugin.Errorf(plugin.CodeHookFailed, "after its hooks %s has no text in %s", name, member)
	}
	return p.String(member), nil
}

// errEnds is in every error of a hook that asked to end the turn by failing.
var errEnds = errors.New("a hook asked to end the turn")

// failed is the end of a turn by such a hook. A caller that gives up does not
// count as a failure of a hook.
func failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return plugin.AsError(err)
	}
	return &plugin.Error{Code: plugin.CodeHookFailed, Message: plugin.AsError(err).Message, Err: errors.Join(errEnds, err)}
}
