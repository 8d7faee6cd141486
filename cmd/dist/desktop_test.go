package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/base/version"
)

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// A bundle is what a bundle for Claude Desktop has.
type bundle struct {
	files    []file
	manifest desktopManifest
}

var bundles = map[target]bundle{} // that were read, as a test runs after the other

func readBundle(t *testing.T, of target) bundle {
	t.Helper()
	if b, known := bundles[of]; known {
		return b
	}
	b := bundle{files: unzip(t, read(t, filepath.Join(released(t), nameOf(of, ".mcpb"))))}
	if want := []string{"CHANGELOG.md", "LICENSE", "README.md", licensesName, "manifest.json", "server/mortise"}; !slices.Equal(namesOf(b.files), want) {
		t.Fatalf("it has %v", namesOf(b.files))
	}
	decode(t, b.files[4].content, &b.manifest)
	if of == here { // the others are too large to keep
		bundles[of] = b
	}
	return b
}

// unpacked returns where the bundle of this system is, as a client keeps it.
func unpacked(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(work, "unpacked")
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	for _, f := range readBundle(t, here).files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.content, f.mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The manifest says how to start the program that the archive of the same system has, and each value
// that it asks for has a default.
func TestTheBundleForClaudeDesktop(t *testing.T) {
	for _, target := range chosen() {
		b := readBundle(t, target)
		all, m, program := b.files, b.manifest, b.files[5]
		archived := untar(t, read(t, filepath.Join(released(t), nameOf(target, ".tar.gz"))))
		if program.mode != 0o755 || !bytes.Equal(program.content, archived[4].content) {
			t.Errorf("%s: the program is another, or its mode is %o", target, program.mode)
		}
		if m.Version != "0.3" || m.Name != "mortise" || m.Release != version.Host || m.Author.Name == "" || m.Description == "" {
			t.Errorf("%+v", m)
		}
		if m.Server.Type != "binary" || m.Server.Entry != program.name || m.Server.Config.Command != "${__dirname}/"+program.name || !slices.Equal(m.Server.Config.Args, []string{"mcp"}) {
			t.Errorf("%+v", m.Server)
		}
		if !slices.Equal(m.Compatibility.Platforms, []string{target.os}) {
			t.Errorf("%s is for %v", target, m.Compatibility.Platforms)
		}
		used := 0
		for name, value := range m.Server.Config.Env {
			key, is := strings.CutPrefix(placeholder.ReplaceAllString(value, "$1"), "user_config.")
			if one, asked := m.Config[key]; !is || !asked || one.Required || one.Title == "" || one.Description == "" {
				t.Errorf("%s is %q, for which no one is asked: %+v", name, value, one)
			}
			used++
		}
		if used != len(m.Config) || m.Config["token"].Type != "string" || !m.Config["token"].Sensitive || m.Config["data_directory"].Type != "directory" {
			t.Errorf("%+v", m.Config)
		}
		var raw struct {
			Config map[string]map[string]any `json:"user_config"`
		}
		if err := json.Unmarshal(all[4].content, &raw); err != nil {
			t.Fatal(err)
		}
		for name, one := range raw.Config {
			if _, has := one["default"]; !has {
				t.Errorf("%s has no default, so that its placeholder would be passed on", name)
			}
		}
	}
}

// start prepares the command of the bundle as a client does, with values for what it asks for.
func start(t *testing.T, values map[string]string) *exec.Cmd {
	t.Helper()
	dir, m := unpacked(t), readBundle(t, here).manifest
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(one string) string {
			name := placeholder.FindStringSubmatch(one)[1]
			if name == "__dirname" {
				return dir
			}
			key := strings.TrimPrefix(name, "user_config.")
			if value, given := values[key]; given {
				return value
			}
			return m.Config[key].Default
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	t.Cleanup(cancel)
	var args []string
	for _, arg := range m.Server.Config.Args {
		args = append(args, fill(arg))
	}
	cmd := exec.CommandContext(ctx, fill(m.Server.Config.Command), args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	for name, value := range m.Server.Config.Env {
		cmd.Env = append(cmd.Env, name+"="+fill(value))
	}
	return cmd
}

// toolsOf starts a server, asks it for its tools and returns their names.
func toolsOf(t *testing.T, cmd *exec.Cmd) []string {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(from)
	answer := func(into any) {
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, into)
		}
		if err != nil {
			_ = cmd.Process.Kill()
			t.Fatalf("%v: %s\n%s", err, line, errs.String())
		}
	}
	say := func(text string) {
		if _, err := io.WriteString(to, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	var begun struct {
		Result struct{ ProtocolVersion string }
	}
	if answer(&begun); begun.Result.ProtocolVersion != "2025-11-25" {
		t.Errorf("it speaks %+v", begun)
	}
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	answer(&list)
	_ = to.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, errs.String())
	}
	var names []string
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// The bundle's command starts and lists its tools, also where its user gives nothing.
func TestTheBundleStarts(t *testing.T) {
	for name, values := range map[string]map[string]string{"defaults": {}, "a data directory": {"data_directory": filepath.Join(t.TempDir(), "data")}} {
		tools := toolsOf(t, start(t, values))
		if !slices.Contains(tools, "mortise.call_result") || !slices.ContainsFunc(tools, func(n string) bool { return strings.HasPrefix(n, "pattern_extractor") }) {
			t.Errorf("%s: its tools are %v", name, tools)
		}
		if dir := values["data_directory"]; dir != "" {
			if _, err := os.Stat(filepath.Join(dir, "mortise.db")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// A server that is named is asked, and nothing on this machine in its place.
	out, err := start(t, map[string]string{"server": "http://127.0.0.1:9", "token": "mrt_none"}).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "127.0.0.1:9") {
		t.Errorf("a server that is not there: %v, %s", err, out)
	}
}
