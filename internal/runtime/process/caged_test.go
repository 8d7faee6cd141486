package process_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

func needFull(t *testing.T, r *process.Runner) {
	t.Helper()
	if r.Level() != string(sandbox.Full) {
		t.Skipf("needs a machine that reaches level full, not %s: mortise doctor says what is missing", r.Level())
	}
}

func TestAPluginOverItsMemoryIsNamedAndTheNextCallIsServed(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1, Limits: sandbox.Limits{Memory: 128 << 20}})
	needFull(t, r)
	_, err := run(t, r, target("good", "eat"), call(`{}`))
	wantCode(t, err, plugin.CodeLimitExceeded, "plugins.memory", "128MiB")
	if res, err := run(t, r, target("good", "echo"), call(`1`)); err != nil || string(res.Data) != "1" {
		t.Errorf("afterwards: %s %v", res.Data, err)
	}
}

// A process sees the artifacts of its calls and no other files; calls with the
// same artifacts share one.
func TestArtifactsAreSeenByTheCallsThatNameThem(t *testing.T) {
	t.Parallel()
	dir, hidden := t.TempDir(), t.TempDir()
	r := newRunner(t, process.Options{PerTenant: 1, Hide: []string{hidden}})
	needFull(t, r)
	file := func(dir, name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("this is "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := file(dir, "a"), file(dir, "b")
	read := func(mine, other string) []string {
		c := call(fmt.Sprintf(`{"artifacts":[{"path":%q}],"others":[%q]}`, mine, other))
		c.Files = handOn(t, mine)
		res, err := run(t, r, target("good", "read"), c)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		if err := json.Unmarshal(res.Data, &texts); err != nil {
			t.Fatal(err)
		}
		return texts
	}
	first, again, second := read(a, b), read(a, b), read(b, a)
	if first[1] != "" || first[2] != "this is a" || second[1] != "" || second[2] != "this is b" {
		t.Errorf("%q, %q", first, second)
	}
	if first[0] != again[0] || first[0] == second[0] {
		t.Errorf("processes %q, %q and %q", first[0], again[0], second[0])
	}
	c := call(`{}`)
	c.Files = handOn(t, file(hidden, "ledger.key"))
	_, err := run(t, r, target("good", "read"), c)
	wantCode(t, err, plugin.CodeInvalidInput, "the host's own")
}

// handOn opens a file as a person does at the command line.
func handOn(t *testing.T, path string) []plugin.File {
	t.Helper()
	f, err := handed.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return []plugin.File{f}
}
