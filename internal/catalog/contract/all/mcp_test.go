package all_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// A native manifest says how clients of the Model Context Protocol see an operation, and cannot
// say what would let it speak for the host or act without policy's approval of its effects.
func TestFacesOfOperations(t *testing.T) {
	t.Parallel()
	read := func(operation string) (*plugin.Manifest, error) {
		return contract.Read(dir(t, "manifest.yaml", "name: a\nversion: 1.0.0\noperations: {x: "+operation+"}\n", "plugin.py", ""))
	}
	for entry, want := range map[string]plugin.MCP{
		"{mcp: {prompt: true, asks: true}}":                             {Prompt: true, Asks: true},
		`{mcp: {resource: "notes://{id}/text", mime_type: text/plain}}`: {Resource: "notes://{id}/text", MIMEType: "text/plain"},
		"{kind: operator, effects: [db_write], mcp: {content: true}}":   {Content: true},
	} {
		m, err := read(entry)
		if err != nil {
			t.Errorf("%s: %v", entry, err)
		} else if !reflect.DeepEqual(*m.Operations[0].MCP, want) {
			t.Errorf("%s is %+v, want %+v", entry, *m.Operations[0].MCP, want)
		}
	}
	for entry, want := range map[string]string{
		"{kind: operator, effects: [db_write], mcp: {prompt: true}}": "only a tool can be a prompt or a resource or ask questions",
		"{kind: operator, effects: [db_write], mcp: {asks: true}}":   "only a tool can be a prompt or a resource or ask questions",
		`{kind: agent, mcp: {resource: "notes://x"}}`:                "only a tool can be a prompt or a resource or ask questions",
		`{mcp: {resource: "mortise://sessions/x/report"}}`:           "the scheme mortise is not a plugin's own",
		`{mcp: {resource: "file:///etc/passwd"}}`:                    "the scheme file is not a plugin's own",
		`{mcp: {resource: "notes"}}`:                                 "is no URI",
		`{mcp: {resource: "notes://{a b}"}}`:                         "is no URI",
		`{mcp: {resource: "notes://x", prompt: true}}`:               "a resource is not a prompt too",
		"{mcp: {mime_type: text/plain}}":                             "it is of a resource, and there is none",
		"{mcp: {promt: true}}":                                       "unknown key; did you mean prompt?",
	} {
		if _, err := read(entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", entry, err, want)
		}
	}
}
