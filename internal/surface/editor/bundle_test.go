package editor

import (
	"os"
	"path/filepath"
	"testing"
)

// A tool is the host's where its name says so and no project's configuration has another server that the name could be of.
func TestANameDoesNotMakeAToolTheHosts(t *testing.T) {
	t.Parallel()
	ours := func(s Server) bool { return s.Name == HostName && len(s.Command) == 1 && s.Command[0] == "mortise" }
	for _, test := range []struct {
		project string // its .mcp.json; "" for none
		tool    string
		own     bool
	}{
		{"", "mcp__mortise__mail.send", true},
		{"", "mcp__plugin_mortise_mortise__mail.send", true},
		{"", "mcp__mortises__mail.send", false},
		{"", "mcp__other__mortise__mail.send", false},
		{"", "Bash", false},
		{`{"mcpServers": {}}`, "mcp__mortise__mail.send", true},
		{`{"mcpServers": {"other": {"command": "x"}}}`, "mcp__mortise__mail.send", true},
		{`{"mcpServers": {"mortise": {"command": "mortise"}}}`, "mcp__mortise__mail.send", true},
		{`{"mcpServers": {"mortise": {"command": "x"}}}`, "mcp__mortise__mail.send", false},
		{`{"mcpServers": {"mortise": {"command": "mortise", "args": ["x"]}}}`, "mcp__mortise__mail.send", false},
		{`{"mcpServers": {"mortise": {"command": "mortise", "url": "http://127.0.0.1/"}}}`, "mcp__mortise__mail.send", false},
		{`{"mcpServers": {"mortise": {"url": "http://127.0.0.1/"}}}`, "mcp__mortise__mail.send", false},
		{`{"mcpServers": {"mortise": {"url": "http://127.0.0.1/"}}}`, "mcp__plugin_mortise_mortise__mail.send", true},
		{`{"mcpServers": {"mortise__mail": {"command": "mortise"}}}`, "mcp__mortise__mail__send", false},
		{`{"mcpServers": {"mortise__mail": {"command": "mortise"}}}`, "mcp__mortise__file__send", true},
		{`{"mcpServers": {"plugin:mortise:mortise": {"command": "x"}}}`, "mcp__plugin_mortise_mortise__mail.send", false},
		{`{"mcpServers": {"plugin mörtise": {"command": "x"}}}`, "mcp__plugin_mortise_mortise__mail.send", true},
		{`{"mcpServers": {"mortise😀mail": {"command": "x"}}}`, "mcp__mortise__mail__send", false},
		{`{"mcpServers": {"mortise\ud83d\ude00mail": {"command": "x"}}}`, "mcp__mortise__mail__send", false},
		{`{"mcpServers": {"mortise😀": {"command": "x"}}}`, "mcp__mortise____send", false},
		{`{"mcpServers": {"plugin\ud83dmortise\ude00mortise": {"command": "x"}}}`, "mcp__plugin_mortise_mortise__mail.send", false},
		{`{"mcpServers": {"mortise"`, "mcp__mortise__mail.send", false},
		{`[]`, "mcp__mortise__mail.send", false},
	} {
		project := t.TempDir()
		below := filepath.Join(project, "src", "deep")
		if err := os.MkdirAll(below, 0o700); err != nil {
			t.Fatal(err)
		}
		if test.project != "" {
			if err := os.WriteFile(filepath.Join(project, ".mcp.json"), []byte(test.project), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, dirs := range [][]string{{project}, {below}, {t.TempDir(), below}} {
			if own := OwnTool(test.tool, dirs, ours); own != test.own {
				t.Errorf("%s, with %q: own is %t", test.tool, test.project, own)
			}
		}
	}
}
