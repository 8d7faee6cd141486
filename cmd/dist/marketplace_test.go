package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/surface/editor"
)

// plugin returns the files of the plugin for Claude Code by their names in it, found as Claude Code
// finds them: from the list of the marketplace on.
func plugin(t *testing.T) map[string][]byte {
	t.Helper()
	top := "mortise-" + version.Host + "-claude-code"
	all := map[string][]byte{}
	for _, f := range unzip(t, read(t, filepath.Join(released(t), top+".zip"))) {
		name, within := strings.CutPrefix(f.name, top+"/")
		if !within || f.mode != 0o644 {
			t.Errorf("%s has the mode %o", f.name, f.mode)
		}
		all[name] = f.content
	}
	var list market
	decode(t, all[".claude-plugin/marketplace.json"], &list)
	if list.Name != "mortise" || list.Owner.Name == "" || len(list.Plugins) != 1 || list.Plugins[0].Name != "mortise" || list.Plugins[0].Version != version.Host {
		t.Fatalf("%+v", list)
	}
	inside := map[string][]byte{}
	for name, content := range all {
		if rest, is := strings.CutPrefix(name, path.Clean(list.Plugins[0].Source)+"/"); is {
			inside[rest] = content
		}
	}
	return inside
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// The plugin has a server, and the hook that mortise connect writes.
func TestThePluginForClaudeCode(t *testing.T) {
	inside := plugin(t)
	if len(inside) != 4 {
		t.Errorf("it has %d files", len(inside))
	}
	var manifest pluginManifest
	decode(t, inside[".claude-plugin/plugin.json"], &manifest)
	if manifest.Name != "mortise" || manifest.Version != version.Host || manifest.Description == "" {
		t.Errorf("%+v", manifest)
	}
	var servers struct {
		Servers map[string]struct {
			Type, Command string
			Args          []string
		} `json:"mcpServers"`
	}
	decode(t, inside[".mcp.json"], &servers)
	if one := servers.Servers["mortise"]; len(servers.Servers) != 1 || one.Type != "stdio" || one.Command != "mortise" || !slices.Equal(one.Args, []string{"mcp"}) {
		t.Errorf("%+v", servers)
	}
	for name := range servers.Servers { // what Claude Code calls the tools of the plugin's server
		if tool := "mcp__plugin_" + manifest.Name + "_" + name + "__mail.send"; !editor.OwnTool(tool, nil, nil) {
			t.Errorf("the hook asks about %s, which is judged when it is called", tool)
		}
	}
	client, _ := editor.Find("claude-code")
	asking, _ := client.Hooks()
	settings := filepath.Join(t.TempDir(), "settings.json")
	change, err := asking.Put(settings, editor.Entry{Name: "mortise", Command: "mortise", Args: []string{"hook", "claude-code"}})
	if err != nil || change.Write() != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(inside["hooks/hooks.json"], read(t, settings)) {
		t.Errorf("the hooks are others than mortise connect writes:\n%s", inside["hooks/hooks.json"])
	}
}

// hookCommand returns what the plugin runs at an event, for all tools.
func hookCommand(t *testing.T, inside map[string][]byte, event string) string {
	t.Helper()
	var hooks struct {
		Hooks map[string][]struct {
			Matcher string
			Hooks   []struct {
				Type, Command string
				Timeout       int
			}
		}
	}
	decode(t, inside["hooks/hooks.json"], &hooks)
	at := hooks.Hooks[event]
	if len(at) != 1 || at[0].Matcher != "*" || len(at[0].Hooks) != 1 || at[0].Hooks[0].Type != "command" {
		t.Fatalf("%s: %+v", event, at)
	}
	return at[0].Hooks[0].Command
}

// The hook of the plugin runs with the program of the release: it denies what no policy allows, passes
// the plugin's own tools, and blocks every tool where there is no mortise.
func TestTheHookOfThePlugin(t *testing.T) {
	inside := plugin(t)
	bin := filepath.Join(unpacked(t), "server")
	home := t.TempDir()
	command := hookCommand(t, inside, "PreToolUse")
	hook := func(dir, tool string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
		cmd.Env = []string{"HOME=" + home, "PATH=" + dir}
		cmd.Stdin = strings.NewReader(`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"` + tool + `","tool_input":{},"tool_use_id":"u"}`)
		out, err := cmd.Output()
		return string(out), err
	}
	if out, err := hook(bin, "Bash"); err != nil || !strings.Contains(out, `"permissionDecision":"deny"`) {
		t.Errorf("Bash without a policy: %v, %s", err, out)
	}
	if out, err := hook(bin, "mcp__plugin_mortise_mortise__mail.send"); err != nil || out != "" {
		t.Errorf("a tool of the plugin: %v, %s", err, out)
	}
	var exit *exec.ExitError
	if out, err := hook(t.TempDir(), "Bash"); out != "" || !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("without mortise: %v, %s", err, out)
	}
}

// What the skill says is so: its codes are the host's, its commands and tools are there.
func TestTheSkillIsTrue(t *testing.T) {
	text := string(plugin(t)["skills/approvals/SKILL.md"])
	head, body, found := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !found || !strings.HasPrefix(head, "name: approvals\ndescription: ") || strings.Count(head, "\n") != 1 || len(head) > 1024 {
		t.Errorf("its front matter is %q", head)
	}
	var codes []struct{ Code string }
	if err := json.Unmarshal(read(t, filepath.Join("..", "..", "protocol", "codes.json")), &codes); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(body, -1)
	for _, row := range rows {
		if !slices.ContainsFunc(codes, func(c struct{ Code string }) bool { return c.Code == row[1] }) {
			t.Errorf("%s is no code", row[1])
		}
	}
	if len(rows) < 5 {
		t.Errorf("%d codes", len(rows))
	}
	tools := toolsOf(t, start(t, nil))
	for _, tool := range regexp.MustCompile("`(mortise\\.[a-z_]+)`").FindAllStringSubmatch(body, -1) {
		if !slices.Contains(tools, tool[1]) {
			t.Errorf("there is no tool %s", tool[1])
		}
	}
	for _, command := range regexp.MustCompile("`mortise ([a-z ]+)`").FindAllStringSubmatch(body, -1) {
		help := start(t, nil)
		help.Args = append(append(help.Args[:1:1], strings.Fields(command[1])...), "--help")
		if out, err := help.CombinedOutput(); err != nil || !strings.Contains(string(out), "mortise "+command[1]) {
			t.Errorf("mortise %s: %v, %s", command[1], err, out)
		}
	}
}
