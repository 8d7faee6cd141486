package scaffold_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/scaffold"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/plugin"
)

// TestEachContractHasAPlugin: for every contract and each of its languages a plugin is written
// whose manifest is of that contract and has nothing to complain about, and whose own tests
// pass, and fail where its code does something else.
func TestEachContractHasAPlugin(t *testing.T) {
	t.Parallel()
	dialects := map[string]string{"kernel": "kernel", "shu": "shu", "eventmill": "eventmill", "openhermit": "openhermit", "runtime": "native"}
	code := map[string]string{"kernel": "plugin.py", "shu": "plugin.py", "eventmill": "tool.py", "openhermit": "index.ts", "runtime": "plugin.sh"}
	for _, name := range slices.Sorted(maps.Keys(dialects)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lang, err := scaffold.Template(name, scaffold.Contracts[name][0])
			if err != nil {
				t.Fatal(err)
			}
			for _, program := range []string{"python3", "node"} {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not in PATH: install it", program)
				}
			}
			dir := written(t, "hello", lang)
			if name == "eventmill" {
				dir = filepath.Join(dir, "plugins", "log_analysis", "hello")
			}
			reading, err := contract.Inspect(dir)
			if err != nil || len(reading.Notes) > 0 || reading.Manifest.Dialect != dialects[name] {
				t.Fatalf("%+v, %v", reading, err)
			}
			if out, err := ownTests(t, dir); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			file := filepath.Join(dir, code[name])
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.NewReplacer("Hello, ", "Bye, ", "len(lines)", "7", "seen.refused++", "").Replace(string(text))
			if err := os.WriteFile(file, []byte(changed), 0o755); err != nil {
				t.Fatal(err)
			}
			if out, err := ownTests(t, dir); err == nil {
				t.Errorf("the tests pass though the code is wrong:\n%s", out)
			}
		})
	}
}

// ownTests runs a plugin's own tests.
func ownTests(t *testing.T, dir string) (string, error) {
	t.Helper()
	m, err := contract.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	tree, _ := contract.Tree(dir)
	argv, err := interpreter.New(interpreter.Options{Dir: t.TempDir()}).TestCommand(t.Context(), plugin.Package{Dir: tree, Dev: true}, m, "")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestWhatThereIsNoTemplateFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ contract, lang, want string }{
		{"nonsense", "", "choose one of eventmill, kernel, mortise, openhermit, runtime, shu"},
		{"shu", "ts", "it is python"},
	} {
		if _, err := scaffold.Template(c.contract, c.lang); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %q: %v", c.contract, c.lang, err)
		}
	}
	if _, err := scaffold.New(filepath.Join(t.TempDir(), "x"), "Not.AWord", "eventmill"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("%v", err)
	}
}
