package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/runtime/script"
	"github.com/mortise-dev/mortise/plugin"
)

// scriptRow is the requirement that a plugin of hooks loads, and handlerRow that
// its handlers do what the shape of their event is for.
const (
	scriptRow  = "HK-07"
	handlerRow = "HK-03"
)

// isScript reports whether the host runs the plugin in dir inside of itself. One
// that cannot be read may be one all the same.
func isScript(dir string) bool {
	reading, err := contract.Inspect(dir)
	return err == nil && reading.Manifest.Runner.Kind == "script"
}

// unloaded adds the failure of a plugin of hooks whose code cannot be read, or
// whose register fails.
func (c *checker) unloaded(name, dir string, err error) {
	var problems contract.Problems
	if errors.As(err, &problems) {
		c.manifest(name, err)
		return
	}
	c.result(Result{name, starts, Fail, story(dir, err), scriptRow})
}

// script makes the checks of a plugin of hooks: its register does each time what
// it did when it was registered, and its handlers answer.
func (c *checker) script(ctx context.Context, s registry.Shown) error {
	dir := packageOf(s).Dir
	said := &journal{}
	instance, err := openScript(ctx, dir, s.Manifest, said)
	if err == nil {
		defer instance.Close()
		err = same(s.Manifest, instance)
	}
	if err != nil {
		c.result(Result{s.Name, honest, Fail, story(dir, err), scriptRow})
		return ctx.Err()
	}
	c.result(Result{s.Name, honest, Pass, said.take(), scriptRow})
	h := handlers{c, s.Name, dir, instance.Subscriptions(), said}
	return h.check(ctx)
}

// openScript runs a plugin for an agent that there is not: it remembers nothing.
func openScript(ctx context.Context, dir string, m *plugin.Manifest, said *journal) (*script.Instance, error) {
	program, err := script.CompileEntry(ctx, filepath.Join(dir, filepath.FromSlash(m.Dir)), m.Runner.Entry)
	if err != nil {
		return nil, err
	}
	return script.Open(ctx, program, script.Environment{
		Agent: "support", Plugin: m.Name,
		Session: func(context.Context) script.Session {
			return script.Session{ID: "sess_2f6c19d0a4be", Type: "direct", Channel: "slack"}
		},
		Log:     func(level, message string, fields json.RawMessage) { said.add(level, message, fields) },
		Ignored: func(what string) { said.ignored = what },
	})
}

// same reports what an instance registered otherwise than the one that was asked
// for its manifest.
func same(m *plugin.Manifest, i *script.Instance) error {
	var events, tools []string
	for _, s := range i.Subscriptions() {
		events = append(events, s.Event)
	}
	for _, t := range i.Tools() {
		tools = append(tools, t.Name)
	}
	var registered, operations []string
	for _, h := range m.Hooks {
		registered = append(registered, h.Event)
	}
	for _, op := range m.Operations {
		operations = append(operations, op.Name)
	}
	slices.Sort(tools)
	slices.Sort(operations)
	if slices.Equal(events, registered) && slices.Equal(tools, operations) {
		return nil
	}
	return plugin.Errorf(plugin.CodePluginError, "register did not do twice the same: it heard %s and added %s, and then %s and %s; let it depend on nothing that changes",
		list(registered), list(operations), list(events), list(tools))
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// A journal keeps what a plugin logs.
type journal struct {
	lines   []string
	dropped int
	ignored string // what a listener returned that changes nothing
}

// maxLines is how many lines of the log a result shows.
const maxLines = 5

func (j *journal) add(level, message string, fields json.RawMessage) {
	if len(j.lines) == maxLines {
		j.dropped++
		return
	}
	line := level + ": " + message
	if len(fields) > 0 {
		line += " " + clip(fields)
	}
	j.lines = append(j.lines, line)
}

// take returns the lines so far, below the detail of a result, and forgets them.
func (j *journal) take() string {
	var b strings.Builder
	for _, line := range j.lines {
		b.WriteString("\n  log: " + line)
	}
	if j.dropped > 0 {
		fmt.Fprintf(&b, "\n  log: and %d lines more", j.dropped)
	}
	*j = journal{}
	return b.String()
}

// eventOf returns the line of the catalogue that a subscription is about.
func eventOf(s event.Subscription) *event.Event {
	e, _ := event.Find(s.Event) // no bus and no manifest has another
	return e
}
