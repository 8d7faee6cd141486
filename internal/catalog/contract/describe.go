package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	json2 "github.com/go-json-experiment/json"
	"github.com/mortise-dev/mortise/plugin"
)

// Described is what a plugin's code says of itself when it is asked to
// `describe` (docs/protocol.md). The zero value says nothing: that of a
// plugin that does not know the method.
type Described struct {
	Name         string                        `json:"name"`
	Version      string                        `json:"version"`
	Description  string                        `json:"description"`
	Capabilities []string                      `json:"capabilities"`
	Operations   map[string]DescribedOperation `json:"operations"`
	Hooks        []DescribedHook               `json:"hooks"`
}

// A DescribedOperation is one operation as the code has it. All but the kind
// may be absent.
type DescribedOperation struct {
	Kind        plugin.Kind     `json:"kind"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
	Effects     []string        `json:"effects"`
	PolicyTags  []string        `json:"policy_tags"`
	Permissions []string        `json:"permissions"`
	Timeout     string          `json:"timeout"` // as in a manifest
	Labels      []string        `json:"labels"`

	Preview   bool `json:"preview"`
	Reconcile bool `json:"reconcile"`
	Brokered  bool `json:"brokered"`

	AllowedActions []string `json:"allowed_actions"`
	ContextFields  []string `json:"context_fields"` // requires.context_fields of the manifest
}

// Silent reports whether the code says nothing at all.
func (d Described) Silent() bool {
	return d.Name == "" && d.Version == "" && len(d.Operations) == 0 && len(d.Capabilities) == 0 && len(d.Hooks) == 0
}

// ParseDescribed reads the result of `describe` and returns what it says of
// the plugin called name; an empty name means the only one there is.
func ParseDescribed(result []byte, name string) (Described, error) {
	var answer struct {
		Plugins []Described `json:"plugins"`
	}
	if err := json2.Unmarshal(result, &answer); err != nil {
		return Described{}, fmt.Errorf("reading the plugin's description of itself: %w", err)
	}
	var names []string
	for _, d := range answer.Plugins {
		if d.Name == name || name == "" && len(answer.Plugins) == 1 {
			return d, nil
		}
		names = append(names, d.Name)
	}
	switch {
	case len(names) == 0:
		return Described{}, errors.New("the plugin's description of itself names no plugin")
	case name == "":
		return Described{}, fmt.Errorf("the file holds several plugins: %s", strings.Join(names, ", "))
	default:
		return Described{}, fmt.Errorf("the code describes %s, not %s", strings.Join(names, ", "), name)
	}
}

// NeedsDescribe reports whether the code of m must be asked for what m leaves
// open, and can be: its operations, or a schema of one.
func NeedsDescribe(m *plugin.Manifest) bool {
	if m.Runner.Protocol != "2" || m.Runner.Kind == WebhookRunner || m.Runner.Kind == MCPRunner { // which describe nothing
		return false
	}
	if own, has := Of[Describer](m); has {
		return own.NeedsDescribe(m)
	}
	open := func(op *plugin.Operation) bool { return op.Input == nil || op.Output == nil }
	return len(m.Operations) == 0 || slices.ContainsFunc(m.Operations, open)
}

// Merge returns m filled up with what its code says. m is not changed.
//
// The manifest is the author's promise, read by people; the code may fill what
// it leaves open and may say no more than it. So, where the manifest names
// operations: the code has the same ones; what it says of effects, policy tags,
// permissions, allowed actions and of what an operator can do stands in the
// manifest too; only descriptions and schemas that are absent are filled, and
// what narrows is added: labels, and context fields where the manifest has none.
// Where it names none, the operations are those of the code. Anything else is
// one of the [Problems] that are the error. A contract that is a [Merger] has rules
// of its own.
func Merge(m *plugin.Manifest, d Described) (*plugin.Manifest, error) {
	c := NewValidator("code")
	own, has := Of[Merger](m)
	if has {
		merged := own.Merge(c, m, d)
		if err := c.Err(); err != nil {
			return nil, err
		}
		return merged, nil
	}
	merged := *m
	if d.Silent() {
		c.Unsaid(m)
		if err := c.Err(); err != nil {
			return nil, err
		}
		return &merged, nil
	}
	merged.Name = c.identity("name", m.Name, d.Name)
	merged.Version = c.identity("version", m.Version, d.Version)
	if merged.Version == "" {
		merged.Version = "0.0.0"
	}
	if !ValidName(merged.Name) {
		c.Problem("/name", "%q is no name: %s", Clip(merged.Name), NameRule)
	}
	if _, err := semver.StrictNewVersion(merged.Version); err != nil {
		c.Problem("/version", "%q is no semantic version, such as 1.2.0", Clip(merged.Version))
	}
	if merged.Description == "" {
		merged.Description = c.Text("/description", d.Description)
	}
	capabilities := c.Words("/capabilities", d.Capabilities)
	if len(m.Capabilities) == 0 && len(m.Operations) == 0 {
		merged.Capabilities = capabilities
	} else {
		c.within("/capabilities", capabilities, m.Capabilities)
	}

	merged.Requires.ContextFields = c.contextFields(m, d)
	if len(m.Hooks) == 0 {
		merged.Hooks = c.Hooks(d.Hooks)
	}
	if len(m.Operations) == 0 && (len(d.Operations) > 0 || len(merged.Hooks) == 0) {
		merged.Operations = c.Operations(d)
	} else {
		merged.Operations = c.filled(m, d)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return &merged, nil
}

// identity returns what both say, or the one that says something.
func (c *Validator) identity(what, manifest, code string) string {
	switch {
	case manifest == "":
		return code
	case code != "" && code != manifest:
		c.Problem("/"+what, "the code says %q, the manifest %q", Clip(code), manifest)
	}
	return manifest
}

// within refuses what the code says beyond the manifest.
func (c *Validator) within(at string, code, manifest []string) {
	for _, word := range code {
		if !slices.Contains(manifest, word) {
			c.Problem(at, "the code says %q, the manifest does not", word)
		}
	}
}

// Operations returns the operations of a plugin whose manifest names none.
func (c *Validator) Operations(d Described) []*plugin.Operation {
	if len(d.Operations) == 0 {
		c.Problem("/operations", "neither the manifest nor the code names an operation")
	}
	var ops []*plugin.Operation
	folded := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(d.Operations)) {
		at, said := Child("/operations", name), d.Operations[name]
		if !ValidName(name) {
			c.Problem(at, "%q is no name: %s", Clip(name), NameRule)
		}
		if other, taken := folded[strings.ToLower(name)]; taken {
			c.Problem(at, "it differs from %s in letter case only", other)
		}
		folded[strings.ToLower(name)] = name
		op := &plugin.Operation{
			Name:        name,
			Kind:        said.Kind,
			Description: c.Text(at+"/description", said.Description),
			Input:       c.Schema(at+"/input", said.Input),
			Output:      c.Schema(at+"/output", said.Output),
			Effects:     c.Words(at+"/effects", said.Effects),
			PolicyTags:  c.Words(at+"/policy_tags", said.PolicyTags),
			Permissions: c.Words(at+"/permissions", said.Permissions),
			Timeout:     Timeouts["medium"],
		}
		if said.Timeout != "" {
			timeout, err := parseTimeout(said.Timeout)
			if err != nil {
				c.Problem(at+"/timeout", "%v", err)
			}
			op.Timeout = timeout
		}
		c.abilities(at, op, said)
		if !op.Kind.Known() {
			c.Problem(at+"/kind", "%q is none of agent, operator, tool, adapter", Clip(string(op.Kind)))
		} else if len(op.Effects) > 0 && op.Kind != plugin.Operator {
			c.Problem(at+"/effects", "only an operator may cause effects, and this is of kind %s", op.Kind)
		}
		ops = append(ops, op)
	}
	return ops
}

// filled returns the operations of m with what the code adds to them.
func (c *Validator) filled(m *plugin.Manifest, d Described) []*plugin.Operation {
	for _, name := range slices.Sorted(maps.Keys(d.Operations)) {
		if m.Operation(name) == nil {
			c.Problem(Child("/operations", name), "the code has this operation, the manifest does not")
		}
	}
	var ops []*plugin.Operation
	for _, declared := range m.Operations {
		op, at := *declared, Child("/operations", declared.Name)
		said, has := d.Operations[op.Name]
		if !has {
			c.Problem(at, "the manifest has this operation, the code does not")
			continue
		}
		if said.Kind == plugin.Operator && op.Kind == plugin.Tool {
			c.Problem(at+"/kind", "the code says operator, the manifest tool: a tool's results may be used again")
		}
		c.within(at+"/effects", c.Words(at+"/effects", said.Effects), op.Effects)
		c.within(at+"/policy_tags", c.Words(at+"/policy_tags", said.PolicyTags), op.PolicyTags)
		c.within(at+"/permissions", c.Words(at+"/permissions", said.Permissions), op.Permissions)
		c.within(at+"/allowed_actions", c.references(at+"/allowed_actions", said.AllowedActions), op.AllowedActions)
		c.able(at, said, &op)
		op.Labels = plugin.Labels(op.Labels, c.labels(at+"/labels", said.Labels))
		if op.Description == "" {
			op.Description = c.Text(at+"/description", said.Description)
		}
		if op.Input == nil {
			op.Input = c.Schema(at+"/input", said.Input)
		}
		if op.Output == nil {
			op.Output = c.Schema(at+"/output", said.Output)
		}
		ops = append(ops, &op)
	}
	return ops
}
