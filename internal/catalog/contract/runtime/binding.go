// Package runtime makes manifests of what the configuration of the host says of
// plugins of the runtime protocol.
package runtime

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// Name is the name of the contract.
const Name = "runtime"

// Contract is the contract of the runtime protocol. Its plugins have no manifest:
// the configuration of the host binds them.
type Contract struct{}

// Name implements [contract.Contract].
func (Contract) Name() string { return Name }

// Protocol is the version that a binding speaks unless it names another.
const Protocol = "rterm.plugin.v1"

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
// called. If the binding is not acceptable, the error is
// [contract.Problems] whose
// pointers lead into the binding.
func Bind(b Binding) (*plugin.Manifest, error) {
	c := contract.NewValidator("binding of " + strconv.Quote(contract.Clip(b.PluginID)))
	m := &plugin.Manifest{
		Name:        b.PluginID,
		Version:     b.Version,
		DisplayName: c.Text("/display_name", b.DisplayName),
		Description: c.Text("/description", b.Description),
		Dialect:     Name,
		Runner:      plugin.Runner{Kind: contract.ProcessRunner, Command: commandOf(c, b), Protocol: "1"},
		Isolation:   plugin.IsolationCall,
	}
	m.Runner.Binding = &plugin.Binding{
		ProtocolVersion: b.ProtocolVersion,
		Capabilities:    c.Words("/capabilities", b.Capabilities),
		Context:         maps.Clone(b.Context),
	}
	if m.Runner.Binding.ProtocolVersion == "" {
		m.Runner.Binding.ProtocolVersion = Protocol
	}
	if reason := contract.BadWord(m.Runner.Binding.ProtocolVersion); reason != "" {
		c.Problem("/protocol_version", "%s", reason)
	}
	if !contract.ValidName(b.PluginID) {
		c.Problem("/plugin_id", "%q is no name: %s", contract.Clip(b.PluginID), contract.NameRule)
	}
	if m.Version == "" {
		m.Version = "0.0.0"
	} else if _, err := semver.StrictNewVersion(m.Version); err != nil {
		c.Problem("/version", "%q is no semantic version, such as 1.2.0", contract.Clip(m.Version))
	}
	if len(b.Tools) == 0 {
		c.Problem("/tools", "no tool may be used: name one at least")
	}
	folded := map[string]string{}
	for i, tool := range b.Tools {
		at := "/tools/" + strconv.Itoa(i)
		m.Operations = append(m.Operations, toolOf(c, at, tool, b))
		if other, taken := folded[strings.ToLower(tool.Name)]; taken {
			c.Problem(at, "%s stands here twice, letter case aside", other)
		}
		folded[strings.ToLower(tool.Name)] = tool.Name
	}
	contract.SortOperations(m.Operations)
	if err := c.Err(); err != nil {
		return nil, err
	}
	return contract.Complete(m), nil
}

func toolOf(c *contract.Validator, at string, tool ToolBinding, b Binding) *plugin.Operation {
	if !contract.ValidName(tool.Name) {
		c.Problem(at, "%q is no name: %s", contract.Clip(tool.Name), contract.NameRule)
	}
	pick := func(key string, own, shared []string) []string {
		if own != nil {
			return c.Words(at+key, own)
		}
		return c.Words(key, shared)
	}
	timeout := tool.Timeout
	switch {
	case timeout == 0 && b.Timeout == 0:
		timeout = bindingTimeout
	case timeout == 0:
		timeout = b.Timeout
	}
	if timeout < 0 || timeout > contract.MaxTimeout {
		c.Problem(at+"/timeout", "%s is not between 0 and 24h", timeout)
	}
	return &plugin.Operation{
		Name:        tool.Name,
		Kind:        plugin.Operator,
		Description: c.Text(at+"/description", tool.Description),
		Input:       c.Schema(at+"/input", tool.Input),
		Output:      c.Schema(at+"/output", tool.Output),
		Effects:     pick("/effects", tool.Effects, b.Effects),
		PolicyTags:  pick("/policy_tags", tool.PolicyTags, b.PolicyTags),
		Permissions: pick("/permissions", tool.Permissions, b.Permissions),
		Timeout:     timeout,
	}
}

// commandOf checks a binding's command and makes its paths absolute: the plugin
// starts in a directory of its own.
func commandOf(c *contract.Validator, b Binding) []string {
	if len(b.Command) == 0 {
		c.Problem("/command", "a program belongs here, at least")
		return nil
	}
	command := slices.Clone(b.Command)
	for i, part := range command {
		if strings.ContainsRune(part, 0) {
			c.Problem("/command/"+strconv.Itoa(i), "it holds a zero byte")
		}
	}
	program := command[0]
	switch reason := contract.BadWord(program); {
	case reason != "":
		c.Problem("/command/0", "%s", reason)
	case filepath.IsAbs(program), !strings.ContainsAny(program, `/\`):
	case !filepath.IsAbs(b.Dir):
		c.Problem("/command/0", "%q is a path that starts nowhere: write it as an absolute one", contract.Clip(program))
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
