package scaffold_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/carried"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/scaffold"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var needs = map[string]string{"python": "python3", "ts": "node", "go": "go", "command": "sh"}

// written writes a plugin called name and returns its directory. Whatever is
// built is built without a network.
func written(t *testing.T, name, lang string) string {
	t.Helper()
	if program := needs[lang]; program != "" {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not in PATH: install it", program)
		}
	}
	dir := filepath.Join(t.TempDir(), "new", name)
	files, err := scaffold.New(dir, name, lang)
	if err != nil {
		t.Fatal(err)
	}
	if found := listing(t, dir); !slices.Equal(files, found) {
		t.Errorf("New says it wrote\n%q\nand wrote\n%q", files, found)
	}
	return dir
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

func TestNewPluginsRun(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	if len(needs) != len(scaffold.Languages)-1 { // hooks are no processes: TestNewHooksRun
		t.Errorf("of %v only %v are run", scaffold.Languages, needs)
	}
	for lang := range needs {
		for _, name := range []string{"hello", "Text.word-count_2"} {
			t.Run(lang+" "+name, func(t *testing.T) {
				t.Parallel()
				dir := written(t, name, lang)
				reading, err := contract.Inspect(dir)
				if err != nil {
					t.Fatal(err)
				}
				if len(reading.Notes) > 0 {
					t.Errorf("the manifest has notes: %v", reading.Notes)
				}
				m := reading.Manifest
				if m.Name != name || m.Version != "0.1.0" || len(m.Operations) != 1 {
					t.Errorf("the manifest is %+v", m)
				}
				run(t, dir, m)
			})
		}
	}
}

// run calls the plugin's operation as the host does: checked in and out.
func run(t *testing.T, dir string, m *plugin.Manifest) {
	t.Helper()
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	r := process.New(process.Options{Host: protocol.Peer{Name: "test", Version: "0"}, Scratch: t.TempDir(), Command: i.Command})
	defer r.Close()
	op := m.Operations[0]
	target := &plugin.Target{Manifest: m, Operation: op, Package: plugin.Package{Dir: dir, Digest: "sha256:1"}}
	input, output := compile(t, op.Input), compile(t, op.Output)
	example := func(which string) string {
		data, err := os.ReadFile(filepath.Join(dir, "examples", op.Name+"."+which+".json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, c := range []struct{ in, want string }{
		{`{}`, `{"greeting":"Hello, world!"}`},
		{` { } `, `{"greeting":"Hello, world!"}`},
		{`{"name":"Ada \"Q\" Löve\n"}`, `{"greeting":"Hello, Ada \"Q\" Löve\n!"}`},
		{`{ "name" : "\u00e4\\\" \ud83d\ude00 \t%s $HOME & / \\1"}`, `{"greeting":"Hello, ä\\\" 😀 \t%s $HOME & / \\1!"}`},
		{`{"name":"\"request_id\":\"x\",\"input\":{\"name\":\"Eve\"}}"}`, `{"greeting":"Hello, \"request_id\":\"x\",\"input\":{\"name\":\"Eve\"}}!"}`},
		{`{"name":"` + strings.Repeat("ö", 100_000) + `"}`, `{"greeting":"Hello, ` + strings.Repeat("ö", 100_000) + `!"}`},
		{example("request"), example("response")},
	} {
		if err := input.Check(t.Context(), []byte(c.in)); err != nil {
			t.Errorf("input %.200s: %v", c.in, err)
		}
		result, err := r.Run(t.Context(), target, &plugin.Call{ID: "c1", Tenant: "local", Operation: target.Name(), Input: []byte(c.in)}, nil)
		if err != nil {
			t.Errorf("%.200s: %v", c.in, err)
			continue
		}
		if err := output.Check(t.Context(), result.Data); err != nil {
			t.Errorf("output %.200s: %v", result.Data, err)
		}
		if got, want := value(t, result.Data), value(t, []byte(c.want)); got != want {
			t.Errorf("%.200s: it answers %.200s; want %.200s", c.in, got, want)
		}
	}
	if err := input.Check(t.Context(), []byte(`{"nam":"Ada"}`)); err == nil {
		t.Error("an undeclared name is accepted")
	}
}

func compile(t *testing.T, text json.RawMessage) plugin.Schema {
	t.Helper()
	s, err := schema.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value returns the greeting alone.
func value(t *testing.T, data []byte) string {
	t.Helper()
	var out struct{ Greeting string }
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out.Greeting
}

func TestTheirOwnTestsPass(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	for _, lang := range []string{"python", "ts", "go"} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			dir := written(t, "hello", lang)
			test := func() (string, error) {
				argv := []string{"go", "test", "./..."}
				if lang != "go" {
					m, err := contract.Read(dir)
					if err != nil {
						t.Fatal(err)
					}
					i := interpreter.New(interpreter.Options{Dir: filepath.Join(dir, "..", "runtime")})
					if argv, err = i.TestCommand(t.Context(), plugin.Package{Dir: dir}, m, ""); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOWORK=off")
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := test(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			code := filepath.Join(dir, map[string]string{"python": "plugin.py", "ts": "operations.ts", "go": "main.go"}[lang])
			text, err := os.ReadFile(code)
			if err != nil {
				t.Fatal(err)
			}
			_ = os.WriteFile(code, []byte(strings.ReplaceAll(string(text), "Hello, ", "Good morning, ")), 0o644)
			if out, err := test(); err == nil {
				t.Errorf("the tests pass though the code is wrong:\n%s", out)
			}
		})
	}
}

func TestScriptIsNotFooled(t *testing.T) {
	script := filepath.Join(written(t, "hello", "command"), "plugin.sh")
	for _, c := range []struct{ request, want string }{
		{`{"type":"request","request_id":"r1","tool_name":"greet","context":{"a":"}},\"input\":{\"name\":\"Eve\"}","request_id":"evil","input":"{\"name\":\"Eve\"}"},"input":{"name":"Ada"}}`,
			`{"type":"response","request_id":"r1","status":"ok","output":{"greeting":"Hello, Ada!"},"metadata":{}}`},
		{`{"type":"request","request_id":"r1","tool_name":"greet","context":{},"input":{"name":"Ada","x":{"request_id":"evil","input":{"name":"Eve"}}}}`,
			`{"type":"response","request_id":"r1","status":"error","error":{"code":"invalid_input","message":"the input is neither {} nor {\"name\": a text}"}}`},
	} {
		cmd := exec.Command(script)
		cmd.Stdin = strings.NewReader(`{"type":"handshake","protocol_version":"rterm.plugin.v1"}` + "\n" + c.request) // its last line may lack an end
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		if got != c.want {
			t.Errorf("%s\nis answered %s\nwant %s", c.request, got, c.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "notes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, c := range []struct{ dir, name, lang, want string }{
		{empty, "1st", "python", `"1st" is no name`},
		{empty, "a/b", "python", `"a/b" is no name`},
		{empty, "", "python", `"" is no name`},
		{empty, strings.Repeat("a", 129), "python", "is no name"},
		{empty, "hello", "rust", `there is no template in "rust": choose one of python, ts, go, command, hook`},
		{full, "hello", "python", full + " is not empty"},
		{filepath.Join(full, "notes"), "hello", "python", "cannot be used"},
	} {
		files, err := scaffold.New(c.dir, c.name, c.lang)
		if files != nil || plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%q, %q, %q) is %q, %v; want %q", c.dir, c.name, c.lang, files, err, c.want)
		}
	}
	if left := listing(t, empty); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := scaffold.New(empty, "hello", "python"); err != nil {
		t.Errorf("an empty directory is refused: %v", err)
	}
}

func TestNamesThatYAMLWouldMisread(t *testing.T) {
	for _, name := range []string{"true", "No", "null", "y", "e1", "a."} {
		dir := written(t, name, "command")
		if m, err := contract.Read(dir); err != nil || m.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGoIsAbsentOrFails(t *testing.T) {
	for reason, tool := range map[string]string{"there is no Go toolchain on PATH": "", "no space left": "#!/bin/sh\necho no space left >&2; exit 1\n"} {
		path, dir := t.TempDir(), filepath.Join(t.TempDir(), "hello")
		if tool != "" {
			if err := carried.Write(filepath.Join(path, "go"), []byte(tool)); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", path)
		files, err := scaffold.New(dir, "hello", "go")
		var notBuilt *scaffold.NotBuilt
		if !errors.As(err, &notBuilt) || !strings.Contains(err.Error(), reason) || notBuilt.Dir != dir {
			t.Errorf("the error is %v; want %q", err, reason)
		}
		if found := listing(t, dir); !slices.Equal(files, found) || !slices.Contains(files, "main.go") {
			t.Errorf("New says it wrote %q and wrote %q", files, found)
		}
	}
}

// A plugin's module builds with what this one was built with.
func TestGoModulesAgree(t *testing.T) {
	read := func(file string) string {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	ours, sums := strings.Split(read("../../../go.mod"), "\n"), strings.Split(read("../../../go.sum"), "\n")
	for i, line := range ours {
		ours[i] = strings.TrimSpace(strings.TrimSuffix(line, "// indirect"))
	}
	for _, folder := range []string{"templates/go", "templates/go/third_party/mortise"} {
		for line := range strings.Lines(read(folder + "/go.mod.tmpl")) {
			line = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "// indirect"))
			if (strings.HasPrefix(line, "github.com/go-json") || strings.HasPrefix(line, "golang.org/") || strings.HasPrefix(line, "go ")) && !slices.Contains(ours, line) {
				t.Errorf("%s/go.mod.tmpl has %q, and go.mod does not", folder, line)
			}
		}
		for line := range strings.Lines(read(folder + "/go.sum.tmpl")) {
			if !slices.Contains(sums, strings.TrimSpace(line)) {
				t.Errorf("%s/go.sum.tmpl has %q, and go.sum does not", folder, line)
			}
		}
	}
}
