package service

import (
	"context"
	"encoding/json"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// A double stands in for a task in a dry run. It changes nothing and sends
// nothing; it returns the answer that the task would have given, and what the
// task would have changed, nil for nothing.
type double func(ctx context.Context) (value any, change *plugin.Change, err error)

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

// rehearse answers a request of a dry run. It alone decides what is done in one:
// what changes nothing and stays inside the host, and what only reads where that
// was asked for. A call below is a dry run too. All else is left to the task's
// double, and where it has none it is refused.
func (g *grant) rehearse(ctx context.Context, name string, t task) (any, error) {
	dry := g.call.Dry
	switch {
	case t.class == Nested, t.class == Read && (t.double == nil || dry.Reads):
		return t.do(ctx)
	case t.double == nil:
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s: a dry run has nothing to stand in for it, so it was not done", name)
	}
	value, change, err := t.double(ctx)
	if err != nil || change == nil {
		return value, err
	}
	g.note(name, t, *change)
	return value, nil
}

// note takes down what a request would have changed, without secrets.
func (g *grant) note(name string, t task, c plugin.Change) {
	c.Operation, c.Class, c.Effect = g.target.Name(), string(t.class), t.effect
	c.Service, c.Method, _ = strings.Cut(name, ".")
	if s := g.broker.Scrubber; s != nil {
		c.Target, c.Summary = s.Text(c.Target), s.Text(c.Summary)
		c.Before, c.After = s.JSON(c.Before), s.JSON(c.After)
	}
	g.call.Dry.Note(c)
}

// doubled gives a method a double.
func doubled(m method, stand func(g *grant, ctx context.Context, args json.RawMessage) (any, *plugin.Change, error)) method {
	return func(g *grant, args json.RawMessage) (task, error) {
		t, err := m(g, args)
		t.double = func(ctx context.Context) (any, *plugin.Change, error) { return stand(g, ctx, args) }
		return t, err
	}
}

// keep has later requests of the dry run find a value.
func (g *grant) keep(name string, key, value any, size int) error {
	if g.call.Dry.Keep(key, value, size) {
		return nil
	}
	return plugin.Errorf(plugin.CodeLimitExceeded, "%s: a dry run holds no more of what it would have changed", name)
}

// rehearsed returns what an earlier request of a dry run kept.
func rehearsed[V any](g *grant, key any) (value V, found bool) {
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
