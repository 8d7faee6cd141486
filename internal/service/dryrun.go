package service

import (
	"context"
	"encoding/json"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// A dryHandler answers a task in a dry run. It changes and sends nothing. It returns the
// answer that the task would have given, and the change that the task would have made;
// nil for none.
type dryHandler func(ctx context.Context) (value any, change *plugin.Change, err error)

// A Scrubber takes secrets out of what a person is shown.
type Scrubber interface {
	// Know adds a secret.
	Know(value string) error
	// Keep is Know for what came up in a call of that owner.
	Keep(owner, value string) error
	// JSON and Text return what they are given without the secrets.
	JSON(raw json.RawMessage) json.RawMessage
	Text(text string) string
}

// dryRun answers a request of a dry run. It alone decides what is done in one: tasks that
// change nothing and stay inside the host, and tasks that only read if that was asked
// for. A nested call is a dry run too. The dry handler of the task answers all else; a
// task without one is refused.
func (g *grant) dryRun(ctx context.Context, name string, t task) (any, error) {
	dry := g.call.Dry
	switch {
	case t.class == Nested, t.class == Read && (t.dry == nil || dry.Reads):
		return t.do(ctx)
	case t.dry == nil:
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s has no dry-run handler, so the dry run did not do it", name)
	}
	value, change, err := t.dry(ctx)
	if err != nil || change == nil {
		return value, err
	}
	g.note(name, t, *change)
	return value, nil
}

// note records what a request would have changed, without secrets.
func (g *grant) note(name string, t task, c plugin.Change) {
	c.Operation, c.Class, c.Effect = g.target.Name(), string(t.class), t.effect
	c.Service, c.Method, _ = strings.Cut(name, ".")
	if s := g.broker.Scrubber; s != nil {
		c.Target, c.Summary = s.Text(c.Target), s.Text(c.Summary)
		c.Before, c.After = s.JSON(c.Before), s.JSON(c.After)
	}
	g.call.Dry.Note(c)
}

// withDry gives a method a dry handler.
func withDry(m method, handle func(g *grant, ctx context.Context, args json.RawMessage) (any, *plugin.Change, error)) method {
	return func(g *grant, args json.RawMessage) (task, error) {
		t, err := m(g, args)
		t.dry = func(ctx context.Context) (any, *plugin.Change, error) { return handle(g, ctx, args) }
		return t, err
	}
}

// keep stores a value for later requests of the dry run.
func (g *grant) keep(name string, key, value any, size int) error {
	if g.call.Dry.Keep(key, value, size) {
		return nil
	}
	return plugin.Errorf(plugin.CodeLimitExceeded, "%s: a dry run holds no more of what it would have changed", name)
}

// keptDry returns the value that an earlier request of a dry run stored.
func keptDry[V any](g *grant, key any) (value V, found bool) {
	if g.call.Dry == nil {
		return value, false
	}
	v, found := g.call.Dry.Kept(key)
	value, _ = v.(V)
	return value, found
}

// knowledge returns the knowledge bases; those of a dry run ask no model, because that
// would send data outside.
func (g *grant) knowledge() *kb.Bases {
	if g.call.Dry != nil && !g.call.Dry.Reads {
		return g.broker.Knowledge.Inside()
	}
	return g.broker.Knowledge
}

// shown returns a value as a change has it.
func shown(value any) json.RawMessage {
	raw, err := json2.Marshal(value, json2.Deterministic(true))
	if err != nil {
		panic(err) // it came as JSON
	}
	return json.RawMessage(raw)
}
