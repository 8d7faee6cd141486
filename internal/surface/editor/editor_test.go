package editor

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/mortise-dev/mortise/plugin"
)

var update = flag.Bool("update", false, "write the files of testdata")

var entry = Entry{Name: "mortise", Command: "/opt/mortise/bin/mortise", Args: []string{"mcp", "--list", "search"}, Env: map[string]string{"MORTISE_HOME": `/srv/"hosts"/a b`}}

// Each program has in testdata a configuration as people have it, NAME.before, and what becomes
// of it, NAME.after; NAME.new is what is written where there was none.
func TestEachProgramsConfiguration(t *testing.T) {
	t.Parallel()
	if len(Programs()) != 7 {
		t.Errorf("%d programs", len(Programs()))
	}
	for _, p := range Programs() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			before, err := os.ReadFile(filepath.Join("testdata", p.Name+".before"))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			at := Places{Home: dir, Config: filepath.Join(dir, ".config"), System: "linux"}
			own, err := p.File(at, "")
			if err != nil || !strings.HasPrefix(own, dir) {
				t.Fatalf("%s, %v", own, err)
			}

			// There is none: it is written, and taken away again.
			make1, err := p.Put(own, entry)
			if err != nil || make1.Write() != nil || make1.Kept != "" {
				t.Fatalf("%+v, %v", make1, err)
			}
			golden(t, p.Name+".new", own)
			if again, err := p.Put(own, entry); err != nil || again.Changes() || again.Kept != "" {
				t.Errorf("a second time there is a change: %v\n%s", err, again.Diff())
			}
			other := entry
			other.Args = []string{"mcp"}
			if changed, err := p.Put(own, other); err != nil || changed.Kept != "" || !changed.Changes() || changed.Write() != nil {
				t.Errorf("another entry: %v", err)
			}
			undo, err := p.Undo(own, other)
			if err != nil || undo.Write() != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(own); !os.IsNotExist(err) {
				t.Errorf("what was not there is there after --undo: %v", err)
			}

			// There is one: the rest of it stays.
			if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(own, before, 0o640); err != nil {
				t.Fatal(err)
			}
			change, err := p.Put(own, entry)
			if err != nil || change.Write() != nil {
				t.Fatal(err)
			}
			golden(t, p.Name+".after", own)
			if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("its mode is %v, %v", info.Mode(), err)
			}
			if kept, err := os.ReadFile(change.Kept); err != nil || !bytes.Equal(kept, before) {
				t.Errorf("what was there before is not kept: %v", err)
			}
			if undo, err = p.Undo(own, entry); err != nil || undo.Write() != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(own); err != nil || !bytes.Equal(now, before) {
				t.Errorf("after --undo: %v\n%s", err, now)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(own), "*before-mortise")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}

			// What is changed meanwhile stays changed: the entry alone goes.
			if change, err = p.Put(own, entry); err != nil || change.Write() != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(own)
			if err != nil {
				t.Fatal(err)
			}
			edited := bytes.Replace(text, []byte("other-server"), []byte("edited-server"), 1)
			if err := os.WriteFile(own, edited, 0o640); err != nil {
				t.Fatal(err)
			}
			if undo, err = p.Undo(own, entry); err != nil || undo.Write() != nil {
				t.Fatal(err)
			}
			now, err := os.ReadFile(own)
			if want := bytes.Replace(before, []byte("other-server"), []byte("edited-server"), 1); err != nil || meaning(now) != meaning(want) {
				t.Errorf("after --undo of an edited one: %v\n%s", err, now)
			}
		})
	}
}

// meaning is a text without the spaces that mean nothing, and without an object of servers
// that has none.
func meaning(text []byte) string {
	if small, err := hujson.Minimize(bytes.Clone(text)); err == nil {
		text = bytes.ReplaceAll(small, []byte(`,"mcp":{}`), nil)
	}
	return string(text)
}

func golden(t *testing.T, name, file string) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %v\n%s", name, err, got)
	}
}

// A configuration that is not understood is left as it is.
func TestWhatIsNotUnderstoodIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ program, text, says string }{
		{"cursor", `{"mcpServers": [1]}`, "no object"},
		{"cursor", `{"mcpServers": {`, "EOF"},
		{"cursor", "not JSON", "invalid"},
		{"vscode", `[]`, "no object"},
		{"codex", "mcp_servers = {mortise = {command = \"x\"}}\n", "inline table"},
		{"codex", "[[mcp_servers.mortise]]\ncommand = \"x\"\n", "by hand"},
		{"codex", "[mcp_servers]\nmortise.command = \"x\"\n", "by hand"},
		{"codex", "[mcp_servers.mortise]\nurl = \"https://h\"\n", "rename"},
		{"cursor", `{"mcpServers": {"mortise": {"url": "https://h"}}}`, "rename"},
		{"codex", "mcp_servers.mortise.command = \"x\"\n", "keys with dots"},
	} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, _ := Find(c.program)
		if _, err := p.Put(file, entry); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", c.text, err)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != c.text {
			t.Errorf("%s: %v %s", c.text, err, now)
		}
	}
}

// What is written by others between the plan and the change is not lost, a link stays a link,
// and what is no file is refused.
func TestWritingInOneStep(t *testing.T) {
	t.Parallel()
	p, _ := Find("cursor")
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	change, err := p.Put(file, entry)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"mine":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := change.Write(); plugin.CodeOf(err) != plugin.CodeConflict {
		t.Errorf("it was written over: %v", err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if change, err = p.Put(link, entry); err != nil || change.Write() != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if now, err := os.ReadFile(file); err != nil || !strings.Contains(string(now), `"mine"`) || !strings.Contains(string(now), "/opt/mortise") {
		t.Errorf("%v %s", err, now)
	}
	if _, err := p.Put(dir, entry); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("a directory: %v", err)
	}
	desktop, _ := Find("claude-desktop")
	if _, err := desktop.File(Places{}, dir); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("it has a project: %v", err)
	}
}
