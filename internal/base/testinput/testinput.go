// Package testinput finds the programs that tests start.
//
// `make test` builds each program once and passes the directory in
// MORTISE_TEST_INPUTS. The name of the directory is a hash of the programs and of
// the files that tests hand to them, so a cached test result is valid only for
// the same content. Without the variable the programs are built on first use.
package testinput

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Variable names the environment variable with the directory of programs that
// were built before the tests.
const Variable = "MORTISE_TEST_INPUTS"

// Packages has the package of each program, relative to the repository.
var Packages = map[string]string{
	"mortise":   "./cmd/mortise",
	"reference": "./sdk/go/reference",
}

// Host returns the path of the program mortise.
func Host(t testing.TB) string {
	t.Helper()
	return program(t, "mortise")
}

// Reference returns the path of the plugin in Go that the transcripts of the
// protocol are replayed against.
func Reference(t testing.TB) string {
	t.Helper()
	return program(t, "reference")
}

func program(t testing.TB, name string) string {
	t.Helper()
	path, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Find returns the path of a program of [Packages], for a TestMain, which has no
// test. It may be called concurrently.
func Find(name string) (string, error) {
	if dir := os.Getenv(Variable); dir != "" {
		return filepath.Join(dir, name), nil
	}
	return once(name)
}

var (
	mu    sync.Mutex
	built = map[string]func() (string, error){}
)

// once builds a program once for this process.
func once(name string) (string, error) {
	mu.Lock()
	if built[name] == nil {
		built[name] = sync.OnceValues(func() (string, error) { return build(name) })
	}
	get := built[name]
	mu.Unlock()
	return get()
}

// build builds a program into bin/test/programs of the repository. Several
// processes may build the same program: each renames its result into place.
func build(name string) (string, error) {
	pkg, ok := Packages[name]
	if !ok {
		return "", fmt.Errorf("testinput: no program %q", name)
	}
	out, err := exec.Command("go", "list", "-f", "{{.Root}}", "github.com/mortise-dev/mortise/plugin").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	root := strings.TrimSpace(string(out))
	dir := filepath.Join(root, "bin", "test", "programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	temp := filepath.Join(dir, fmt.Sprintf("%s.%d", name, os.Getpid()))
	cmd := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", temp, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	path := filepath.Join(dir, name)
	return path, os.Rename(temp, path)
}
