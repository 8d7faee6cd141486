package dialect

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// RuntimeProtocol is the version that a binding speaks unless it names another.
const RuntimeProtocol = "rterm.plugin.v1"

// bindingTimeout is the runtime protocol's own default for a call.
const bindingTimeout = 5 * time.Second

// A Binding is what the host's configuration says of a plugin of the runtime
// protocol: the contract's PluginSpec. The plugin's handshake must agree with
// it and can widen nothing.
type Binding struct {
	PluginID        string            `json:"plugin_id"`
	Version         string            `json:"version,omitempty"` // 0.0.0 if it is not known
	DisplayName     string            `json:"display_name,omitempty"`
	Description     string            `json:"description,omitempty"`
	Command         []string          `json:"command"`       // a program's name, its absolute path, or a path below Dir; and its arguments
	Dir             string            `json:"dir,omitempty"` // absolute; what an argument that begins with ./ is below, too
	ProtocolVersion string            `json:"protocol_version,omitempty"`
	Tools           []ToolBinding     `json:"tools"`
	Capabilities    []string          `json:"capabilities,omitempty"` // the core-owned allow-list
	Context         map[string]string `json:"context,omitempty"`
	Effects         []string          `json:"effects,omitempty"` // of every tool that names none itself
	PolicyTags      []string          `json:"policy_tags,omitempty"`
	Permissions     []string          `json:"permissions,omitempty"`
	Timeout         time.Duration     `json:"timeout,omitempty"` // 5 s unless it is set
}

// A ToolBinding is one tool that the plugin may expose.
type ToolBinding struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	Effects     []string        `json:"effects,omitempty"` // instead of the binding's
	PolicyTags  []string        `json:"policy_tags,omitempty"`
	Permissions []string        `json:"permissions,omitempty"`
	Timeout     time.Duration   `json:"timeout,omitempty"`
}

// Tools returns bindings of tools of which nothing but the name is known.
func Tools(names ...string) []ToolBinding {
	tools := make([]ToolBinding, len(names))
	for i, name := range names {
		tools[i].Name = name
	}
	return tools
}

// Bind returns the manifest that a binding stands for. Whether the program
// exists is not asked: a plugin that cannot be launched says so when it is
// called. If the binding is not acceptable, the error is [Problems] whose
// pointers lead into the binding.
func Bind(b Binding) (*plugin.Manifest, error) {
	c := &checker{file: "binding of " + strconv.Quote(clip(b.PluginID))}
	m := &plugin.Manifest{
		Name:        b.PluginID,
		Version:     b.Version,
		DisplayName: c.text("/display_name", b.DisplayName),
		Description: c.text("/description", b.Description),
		Dialect:     Runtime,
		Runner:      plugin.Runner{Kind: processRunner, Command: c.command(b), Protocol: "1"},
		Isolation:   plugin.IsolationCall,
	}
	m.Runner.Binding = &plugin.Binding{
		ProtocolVersion: b.ProtocolVersion,
		Capabilities:    c.words("/capabilities", b.Capabilities),
		Context:         maps.Clone(b.Context),
	}
	if m.Runner.Binding.ProtocolVersion == "" {
		m.Runner.Binding.ProtocolVersion = RuntimeProtocol
	}
	if reason := badWord(m.Runner.Binding.ProtocolVersion); reason != "" {
		c.problem("/protocol_version", "%s", reason)
	}
	if !ValidName(b.PluginID) {
		c.problem("/plugin_id", "%q is no name: %s", clip(b.PluginID), nameRule)
	}
	if m.Version == "" {
		m.Version = "0.0.0"
	} else if _, err := semver.StrictNewVersion(m.Version); err != nil {
		c.problem("/version", "%q is no semantic version, such as 1.2.0", clip(m.Version))
	}
	if len(b.Tools) == 0 {
		c.problem("/tools", "no tool may be used: name one at least")
	}
	folded := map[string]string{}
	for i, tool := range b.Tools {
		at := "/tools/" + strconv.Itoa(i)
		m.Operations = append(m.Operations, c.tool(at, tool, b))
		if other, taken := folded[strings.ToLower(tool.Name)]; taken {
			c.problem(at, "%s stands here twice, letter case aside", other)
		}
		folded[strings.ToLower(tool.Name)] = tool.Name
	}
	sortOperations(m.Operations)
	if err := c.problems.err(); err != nil {
		return nil, err
	}
	return m, nil
}

// A checker collects what is wrong with values that Go has typed already: of a
// binding, or of a plugin's own description.
type checker struct {
	file     string
	problems Problems
}

func (c *checker) problem(at, format string, args ...any) {
	c.problems = append(c.problems, Problem{File: c.file, Pointer: at, Reason: fmt.Sprintf(format, args...)})
}

func (c *checker) tool(at string, tool ToolBinding, b Binding) *plugin.Operation {
	if !ValidName(tool.Name) {
		c.problem(at, "%q is no name: %s", clip(tool.Name), nameRule)
	}
	pick := func(key string, own, shared []string) []string {
		if own != nil {
			return c.words(at+key, own)
		}
		return c.words(key, shared)
	}
	timeout := tool.Timeout
	switch {
	case timeout == 0 && b.Timeout == 0:
		timeout = bindingTimeout
	case timeout == 0:
		timeout = b.Timeout
	}
	if timeout < 0 || timeout > maxTimeout {
		c.problem(at+"/timeout", "%s is not between 0 and 24h", timeout)
	}
	return &plugin.Operation{
		Name:        tool.Name,
		Kind:        plugin.Operator,
		Description: c.text(at+"/description", tool.Description),
		Input:       c.schema(at+"/input", tool.Input),
		Output:      c.schema(at+"/output", tool.Output),
		Effects:     pick("/effects", tool.Effects, b.Effects),
		PolicyTags:  pick("/policy_tags", tool.PolicyTags, b.PolicyTags),
		Permissions: pick("/permissions", tool.Permissions, b.Permissions),
		Timeout:     timeout,
	}
}

// command checks a binding's command and makes its paths absolute: the plugin
// starts in a directory of its own.
func (c *checker) command(b Binding) []string {
	if len(b.Command) == 0 {
		c.problem("/command", "a program belongs here, at least")
		return nil
	}
	command := slices.Clone(b.Command)
	for i, part := range command {
		if strings.ContainsRune(part, 0) {
			c.problem("/command/"+strconv.Itoa(i), "it holds a zero byte")
		}
	}
	program := command[0]
	switch reason := badWord(program); {
	case reason != "":
		c.problem("/command/0", "%s", reason)
	case filepath.IsAbs(program), !strings.ContainsAny(program, `/\`):
	case !filepath.IsAbs(b.Dir):
		c.problem("/command/0", "%q is a path that starts nowhere: write it as an absolute one", clip(program))
	default:
		command[0] = filepath.Join(b.Dir, program)
	}
	for i, arg := range command[1:] {
		if strings.HasPrefix(arg, "./") && filepath.IsAbs(b.Dir) {
			command[i+1] = filepath.Join(b.Dir, arg)
		}
	}
	return command
}

// words checks a list of words: "empty, whitespace-padded and duplicate values
// are rejected".
func (c *checker) words(at string, words []string) []string {
	var seen []string
	for i, word := range words {
		place := at + "/" + strconv.Itoa(i)
		r, hidden := unprintable(word)
		switch reason := badWord(word); {
		case reason != "":
			c.problem(place, "%s", reason)
		case hidden:
			c.problem(place, "it holds the character %U, which does not print", r)
		case slices.Contains(seen, word):
			c.problem(place, "%q stands here twice", word)
		default:
			seen = append(seen, word)
		}
	}
	return seen
}

func (c *checker) text(at, text string) string {
	if r, hidden := unprintable(text); hidden {
		c.problem(at, "it holds the character %U, which does not print", r)
	}
	return text
}

func (c *checker) schema(at string, raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if err := canon.Check(raw, maxDepth); err != nil {
		c.problem(at, "%v", plainSyntax(err))
		return nil
	}
	if _, err := schema.Compile(raw); err != nil {
		c.problem(at, "the schema is refused %v", err)
		return nil
	}
	return compact(raw)
}
