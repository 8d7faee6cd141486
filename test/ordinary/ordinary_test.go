// Package ordinary_test uses the host as a user without privileges. A test that
// runs as root starts the host as another user.
package ordinary_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// unprivileged is the user, and its group, that a test which runs as root becomes.
const unprivileged = 65534

// user is a user without privileges who has a home directory and nothing else.
type user struct {
	*testing.T
	home, temp, program string
}

func newUser(t *testing.T) *user {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("becoming another user is tested on Linux only")
	}
	dir, err := os.MkdirTemp("/tmp", "user-") // a directory that every user may search
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rmtree.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	u := &user{T: t, home: filepath.Join(dir, "home"), temp: filepath.Join(dir, "temp"), program: filepath.Join(dir, "mortise")}
	text, err := os.ReadFile(testinput.Host(t))
	if err == nil {
		err = os.WriteFile(u.program, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{u.home, u.temp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		for _, d := range []string{dir, u.home, u.temp} {
			if err := os.Chown(d, unprivileged, unprivileged); err != nil {
				t.Fatal(err)
			}
		}
	}
	return u
}

// command returns a command of the user in the home directory.
func (u *user) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = u.home
	cmd.Env = []string{
		"HOME=" + u.home, "TMPDIR=" + u.temp, "PATH=" + os.Getenv("PATH"), "GOFLAGS=-mod=mod", "GOPROXY=off",
		"GOCACHE=" + filepath.Join(u.home, "go-build"),
	}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	return cmd
}

// mortise runs the host and returns its standard output. Failing fails the test.
func (u *user) mortise(args ...string) string {
	u.Helper()
	cmd := u.command(u.program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		u.Fatalf("mortise %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// TestAnOrdinaryUserChecksEachTemplate also finds what a check leaves behind:
// packages are installed read-only, and only root can remove them as they are.
func TestAnOrdinaryUserChecksEachTemplate(t *testing.T) {
	t.Parallel()
	for _, template := range []struct {
		name string
		args []string
	}{
		{"python", []string{"--lang", "python"}}, {"ts", []string{"--lang", "ts"}}, {"command", []string{"--lang", "command"}},
		{"hook", []string{"--lang", "hook"}}, {"go", []string{"--lang", "go"}}, {"shu", []string{"--contract", "shu"}},
		{"eventmill", []string{"--contract", "eventmill"}}, {"kernel", []string{"--contract", "kernel"}},
		{"openhermit", []string{"--contract", "openhermit"}}, {"runtime", []string{"--contract", "runtime"}},
	} {
		t.Run(template.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			dir := "my_" + template.name
			u.mortise(append([]string{"new", dir, "--no-register"}, template.args...)...)
			if template.name == "go" {
				u.build(dir)
			}
			u.mortise("check", "./"+dir)
			if left := u.left(); len(left) > 0 {
				t.Errorf("mortise check left %v in the temporary directory", left)
			}
		})
	}
}

// build compiles a plugin in Go. The test does it, since the user has no compiler cache.
func (u *user) build(dir string) {
	u.Helper()
	cmd := exec.Command("go", "build", "-o", "plugin", ".")
	cmd.Dir = filepath.Join(u.home, dir)
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOPROXY=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		u.Fatalf("go build: %v\n%s", err, out)
	}
}

// left returns the names in the temporary directory of the user.
func (u *user) left() []string {
	u.Helper()
	entries, err := os.ReadDir(u.temp)
	if err != nil {
		u.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestAnOrdinaryUserTakesTheFirstSteps is the smoke story of a new user.
func TestAnOrdinaryUserTakesTheFirstSteps(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.mortise("new", "hello", "--lang", "python")
	if out := u.mortise("run", "hello", "--set", "name=Ada"); !strings.Contains(out, "Ada") {
		t.Errorf("mortise run hello printed %q, want a greeting of Ada", out)
	}
	if out := u.mortise("ledger", "list", "--last", "1"); !strings.Contains(out, "hello") {
		t.Errorf("mortise ledger list printed %q, want the call of hello", out)
	}
	u.mortise("ledger", "verify")
	err := filepath.WalkDir(u.home, func(path string, _ fs.DirEntry, err error) error { return err })
	if err != nil {
		t.Errorf("the host wrote a directory that its user cannot read: %v", err)
	}
}
