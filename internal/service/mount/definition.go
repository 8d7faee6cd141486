package mount

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// File is the file of a package that has the [Definition] of its server. The host writes it
// when the server is mounted; no package brings one along.
const File = "_tools.json"

// Bounds of what a server may say of itself.
const (
	MaxTools      = 10_000
	MaxDefinition = 256 << 10 // bytes of one tool
	MaxBytes      = 32 << 20  // bytes of all tools together
	maxPages      = 1_000
	maxName       = 128
)

// operationName is the form of names of operations (package contract).
var operationName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)

// A Definition is what a server says of itself. What was approved is kept in [File], and a
// tool that the server defines otherwise since is not called.
type Definition struct {
	Server  Server    `json:"server"`
	Tools   []Tool    `json:"tools"`             // by name
	Refused []Refused `json:"refused,omitempty"` // by name
}

// A Server is how a server calls itself.
type Server struct {
	Name    string `json:"name"`
	Version string `json:"-"` // a server of a newer version may have the same tools
}

// A Tool is one tool, with every member of its definition that the protocol knows.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitzero"`
	Annotations json.RawMessage `json:"annotations,omitzero"`
	Icons       json.RawMessage `json:"icons,omitzero"`
	Meta        json.RawMessage `json:"_meta,omitzero"`
}

// A Refused is a tool that is no operation, and why.
type Refused struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Parse reads what [Definition.Bytes] wrote.
func Parse(raw []byte) (*Definition, error) {
	d := new(Definition)
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", File, err)
	}
	if len(d.Tools) > MaxTools {
		return nil, fmt.Errorf("%s has more than %d tools", File, MaxTools)
	}
	return d, nil
}

// Bytes returns the definition as it is kept: the same bytes for the same definition.
func (d *Definition) Bytes() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Sums returns the hash of each tool's whole definition, by name.
func (d *Definition) Sums() (map[string]string, error) {
	sums := make(map[string]string, len(d.Tools))
	for i := range d.Tools {
		raw, err := json.Marshal(&d.Tools[i])
		if err != nil {
			return nil, err
		}
		if sums[d.Tools[i].Name], err = canon.Hash(raw); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// Warnings returns what a person should look at before approving: characters that are not
// shown, and texts that speak to a model about other tools or about secrecy. They decide nothing.
func (d *Definition) Warnings() (warnings []string) {
	for _, t := range d.Tools {
		text := t.Name + t.Title + t.Description + string(t.Input) + string(t.Output) + string(t.Annotations)
		if strings.ContainsFunc(text, hidden) {
			warnings = append(warnings, t.Name+": its definition has characters that are not shown")
		}
		lower := strings.ToLower(text)
		for _, phrase := range instructions {
			if strings.Contains(lower, phrase) {
				warnings = append(warnings, fmt.Sprintf("%s: its definition says %q", t.Name, phrase))
			}
		}
	}
	return warnings
}

// instructions are phrases that a description of a tool has no use for.
var instructions = []string{
	"ignore previous", "ignore all previous", "do not tell the user", "don't tell the user", "do not mention", "without telling",
	"before using any other tool", "before calling any other tool", "<important>", "<system>", "system prompt",
}

// hidden reports whether a character is invisible, or changes how the text around it reads.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r':
		return false
	case r >= 0xE0000 && r <= 0xE007F: // tags
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Variation_Selector, r)
}

// A gathering is a definition that is being put together from the pages of a list.
type gathering struct {
	found map[string][]Tool
	bytes int
	count int
}

// add takes up the tools of one page.
func (g *gathering) add(tools []*sdk.Tool) error {
	for _, t := range tools {
		raw, err := json.Marshal(t)
		if err != nil {
			return plugin.Errorf(plugin.CodeMalformedResponse, "the definition of a tool cannot be read: %w", err)
		}
		g.count++
		if g.bytes += len(raw); g.count > MaxTools || g.bytes > MaxBytes {
			return plugin.Errorf(plugin.CodeLimitExceeded, "the server lists more than %d tools, or more than %d MiB of them", MaxTools, MaxBytes>>20)
		}
		var tool Tool
		if len(raw) > MaxDefinition {
			tool = Tool{Name: t.Name, Meta: json.RawMessage(`"too large"`)}
		} else if err := json.Unmarshal(raw, &tool); err != nil {
			return plugin.Errorf(plugin.CodeMalformedResponse, "the definition of a tool cannot be read: %w", err)
		}
		if g.found == nil {
			g.found = map[string][]Tool{}
		}
		g.found[t.Name] = append(g.found[t.Name], tool)
	}
	return nil
}

// definition returns what was gathered, with the tools that cannot be operations set aside.
func (g *gathering) definition(server Server) *Definition {
	d := &Definition{Server: server, Tools: []Tool{}}
	alike := map[string]int{}
	for name := range g.found {
		alike[folded(name)]++
	}
	for name, tools := range g.found {
		if reason := refusal(name, tools, alike[folded(name)]); reason != "" {
			d.Refused = append(d.Refused, Refused{Name: clip(name, maxName), Reason: reason})
			continue
		}
		d.Tools = append(d.Tools, tools[0])
	}
	slices.SortFunc(d.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Refused, func(a, b Refused) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// refusal says why the tools of one name are no operation, "" if there is one that is.
func refusal(name string, tools []Tool, alike int) string {
	t := tools[0]
	switch {
	case len(tools) > 1:
		return "the server lists it more than once"
	case alike > 1:
		return "another tool of the server differs from it in letter case or separators alone"
	case !operationName.MatchString(name):
		return "it is no name of an operation: a letter and up to 127 letters, digits, dots, hyphens and underscores"
	case t.Input == nil:
		return fmt.Sprintf("its definition has more than %d KiB", MaxDefinition>>10)
	}
	if _, err := schema.Compile(t.Input); err != nil {
		return "its input schema cannot be used: " + clip(err.Error(), 300)
	}
	if t.Output != nil {
		if _, err := schema.Compile(t.Output); err != nil {
			return "its output schema cannot be used: " + clip(err.Error(), 300)
		}
	}
	return ""
}

// folded spells names that are easily confused alike.
func folded(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
