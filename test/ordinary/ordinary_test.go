// Package ordinary_test uses the host as a user without privileges. A test that
// runs as root starts the host as another user.
package ordinary_test

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/base/testinput"
	"github.com/mortise-dev/mortise/internal/base/testwait"
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
	u.mortise("new", "hello", "--lang", "python", "--no-register")
	u.mortise("check", "./hello")
	u.mortise("plugins", "register", "./hello")
	if out := u.mortise("run", "hello", "--set", "name=Ada"); !strings.Contains(out, "Ada") {
		t.Errorf("mortise run hello printed %q, want a greeting of Ada", out)
	}
	if out := u.mortise("ledger", "list", "--last", "1"); !strings.Contains(out, "hello") {
		t.Errorf("mortise ledger list printed %q, want the call of hello", out)
	}
	u.mortise("ledger", "verify")

	token := u.token()
	s := u.serve()
	if out := s.greet(token); !strings.Contains(out, "Grace") {
		t.Errorf("the API answered %s, want a greeting of Grace", out)
	}
	s.stop()
	u.mortise("ledger", "verify")

	if left := u.left(); len(left) > 0 {
		t.Errorf("the host left %v in the temporary directory", left)
	}
	err := filepath.WalkDir(u.home, func(path string, _ fs.DirEntry, err error) error { return err })
	if err != nil {
		t.Errorf("the host wrote a directory that its user cannot read: %v", err)
	}
}

// token creates an API token that may run operations.
func (u *user) token() string {
	u.Helper()
	out := u.mortise("tokens", "create", "test", "--scope", "run")
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "mrt_") {
			return strings.TrimSpace(line)
		}
	}
	u.Fatalf("mortise tokens create printed %q, want a line with the token", out)
	return ""
}

// server is a host that answers the API.
type server struct {
	*user
	cmd  *exec.Cmd
	url  string
	logs chan string // receives the rest of standard error once the host has closed it
}

// serve starts a host on a free port and returns when it listens.
func (u *user) serve() *server {
	u.Helper()
	s := &server{user: u, cmd: u.command(u.program, "serve", "--listen", "127.0.0.1:0"), logs: make(chan string, 1)}
	errs, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() { _ = s.cmd.Process.Kill() }) // if the test did not reach stop
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		if _, url, found := strings.Cut(lines.Text(), "listening on "); found {
			s.url = url
			go func() { // ends when the host closes its standard error
				var text strings.Builder
				for lines.Scan() {
					text.WriteString(lines.Text() + "\n")
				}
				s.logs <- text.String()
			}()
			return s
		}
	}
	u.Fatalf("the host ended before it listened: %v, %v", lines.Err(), s.cmd.Wait())
	return nil
}

// greet calls hello over the API and returns the body of the response.
func (s *server) greet(token string) string {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+"/api/v1/operations/hello/greet:execute",
		strings.NewReader(`{"input": {"name": "Grace"}}`))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.Fatalf("status = %s, error = %v, want 200:\n%s", response.Status, err, body)
	}
	return string(body)
}

// stop interrupts the host as Ctrl-C does. The host must end by itself with status 0.
func (s *server) stop() {
	s.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.Fatal(err)
	}
	text := testwait.Receive(s.T, "the end of the host's log", s.logs)
	if err := s.cmd.Wait(); err != nil {
		s.Errorf("mortise serve ended with %v after an interrupt, want status 0:\n%s", err, text)
	}
}
