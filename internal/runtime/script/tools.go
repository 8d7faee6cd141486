package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

var toolName = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// add takes a tool.
func (d *desk) add(text string) error {
	var t struct {
		Name        string
		Description string
		Schema      json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return errors.New("a tool is {name, description, schema, handler}: " + err.Error())
	}
	switch {
	case !d.registering:
		return errors.New("tools.add works while register runs, not later")
	case len(d.tools) >= maxTools:
		return fmt.Errorf("a plugin has at most %d tools", maxTools)
	case !toolName.MatchString(t.Name):
		return fmt.Errorf("the name %q of a tool: it begins with a letter and has at most 64 letters, digits, _, . and -", cut(t.Name, 100))
	case slices.ContainsFunc(d.tools, func(other Tool) bool { return other.Name == t.Name }):
		return fmt.Errorf("there are two tools named %s", t.Name)
	case len(t.Schema) == 0 || t.Schema[0] != '{':
		return fmt.Errorf("tool %s has no schema: a JSON Schema of its input, an object", t.Name)
	}
	d.tools = append(d.tools, Tool{t.Name, cut(t.Description, maxMessage), t.Schema})
	return nil
}

// Tools returns the tools that the plugin added.
func (i *Instance) Tools() []Tool { return slices.Clone(i.tools) }

// Call calls a tool. The input must fit its schema already; what comes back is
// one JSON value.
func (i *Instance) Call(ctx context.Context, tool string, input json.RawMessage) (json.RawMessage, error) {
	n := slices.IndexFunc(i.tools, func(t Tool) bool { return t.Name == tool })
	if n < 0 {
		return nil, plugin.Errorf(plugin.CodeNotFound, "plugin %s has no tool %q", i.name(), cut(tool, 100))
	}
	if len(input) > i.environment.Limits.Result {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the input of %s has %d bytes; at most %d are accepted", tool, len(input), i.environment.Limits.Result)
	}
	if !jsontext.Value(input).IsValid() {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the input of %s is no valid JSON", tool)
	}
	what := "tool " + tool + " of plugin " + i.name()
	limit, err := i.enter(ctx, i.environment.Limits.Tool)
	if err != nil {
		return nil, err
	}
	defer i.leave()
	output, err := i.engine.call(n, string(input), limit)
	if err != nil {
		return nil, i.failed(what, limit, i.environment.Limits.Tool, err)
	}
	return json.RawMessage(output), nil
}
