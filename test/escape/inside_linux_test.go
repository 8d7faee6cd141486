//go:build linux && amd64

package escape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/test/escape/canary"
)

// A host is a process of its own for each level: the plugins it starts inherit
// from it what they can, its canaries are its own, and it can be one that the
// machine refuses namespaces.

// settings are what a host is told, in its environment.
type settings struct {
	Dir    string       `json:"dir"`
	Mark   string       `json:"mark"`
	Mode   sandbox.Mode `json:"mode"`
	Refuse bool         `json:"refuse"` // no user namespaces beneath this one
}

// An attempt is what a probe prints.
type attempt struct {
	Probe   string `json:"probe"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail"`
}

// A run is all that came of one host.
type run struct {
	Report   sandbox.Report  `json:"report"` // of the process that was started
	Machine  sandbox.Report  `json:"machine"`
	Attempts []attempt       `json:"attempts"`
	Evidence canary.Evidence `json:"evidence"`
	Live     bool            `json:"live"` // a link in scratch leads a reader that follows it outside
	Stderr   string          `json:"stderr"`
	End      string          `json:"end"`
	Took     time.Duration   `json:"took"`
	Required string          `json:"required"` // the code of starting something where full is required
}

// becomeHost is the host process.
func becomeHost() error {
	var s settings
	if err := json.Unmarshal([]byte(os.Getenv("MORTISE_ESCAPE_SETTINGS")), &s); err != nil {
		return err
	}
	if s.Refuse {
		return refuse(s)
	}
	r, err := s.run()
	if err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, "result.json"), text, 0o644)
}

// refuse makes the machine one that forbids user namespaces, as some distributions do,
// and this process one without any capability; then the host restarts.
func refuse(s settings) error {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return fmt.Errorf("forbidding user namespaces: %w", err)
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	s.Refuse = false
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.Setenv("MORTISE_ESCAPE_SETTINGS", string(text)); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, os.Environ())
}

// run sets up the canaries, lets the probe loose and looks at what came of it.
func (s settings) run() (*run, error) {
	box, err := sandbox.New(sandbox.Options{Mode: s.Mode, Dir: filepath.Join(s.Dir, "runtime")})
	if err != nil {
		return nil, err
	}
	defer box.Close()
	names, err := exec.Command(filepath.Join(s.Dir, "package", "probe"), "list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the probes: %w", err)
	}
	coop, err := canary.Open(s.Dir, s.Mark, strings.Fields(string(names)))
	if err != nil {
		return nil, fmt.Errorf("setting up the canaries: %w", err)
	}
	defer coop.Close()

	began := time.Now()
	r := &run{Machine: box.Report()}
	if err := s.probes(box, coop, r); err != nil {
		return nil, err
	}
	r.Took = time.Since(began)
	if err := s.survivors(box, r); err != nil {
		return nil, err
	}
	if r.Required, err = s.required(); err != nil {
		return nil, err
	}
	if r.Evidence, err = coop.Evidence(); err != nil {
		return nil, err
	}
	for i, a := range r.Attempts {
		if a.Probe == "signal.by_descriptor_owner" && a.Outcome == "allowed" && !r.Evidence.Owner {
			r.Attempts[i].Outcome, r.Attempts[i].Detail = "denied", "nothing reached the victim"
		}
	}
	return r, nil
}

// spec is what the probe is given, much like a plugin: its package to read, a
// directory to write to, and limits.
func (s settings) spec(args ...string) sandbox.Spec {
	pkg := filepath.Join(s.Dir, "package")
	return sandbox.Spec{
		Argv:    append([]string{filepath.Join(pkg, "probe")}, args...),
		Env:     []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"},
		Read:    []string{pkg},
		Scratch: filepath.Join(s.Dir, "scratch"),
		Limits:  sandbox.Limits{Memory: 1 << 30, Scratch: 256 << 20, FileSize: 256 << 20, Processes: 256, OpenFiles: 1024},
	}
}

func (s settings) probes(box *sandbox.Sandbox, coop *canary.Coop, r *run) error {
	config, err := json.Marshal(coop.Config)
	if err != nil {
		return err
	}
	var out, problem bytes.Buffer
	p, end, err := start(box, s.spec("all"), bytes.NewReader(config), &out, &problem, 20*time.Second)
	if err != nil {
		return err
	}
	r.Report, r.End, r.Stderr = p.Report(), end, problem.String()
	for line := range bytes.Lines(out.Bytes()) {
		var a attempt
		if err := json.Unmarshal(line, &a); err != nil {
			return fmt.Errorf("the probe printed %q: %w", line, err)
		}
		r.Attempts = append(r.Attempts, a)
	}
	r.follow(s, p.Scratch(), coop.Config)
	p.Release()
	return nil
}

// follow reads what lies in scratch as the host does, beneath a root, and as it
// must not, by path.
func (r *run) follow(s settings, root *os.Root, c canary.Config) {
	dir := filepath.Join(s.Dir, "scratch")
	if root == nil {
		var err error
		if root, err = os.OpenRoot(dir); err != nil {
			return
		}
		defer root.Close()
	}
	for _, trap := range []struct{ probe, path string }{
		{"host.follows_symlink", "out"}, {"host.follows_directory", "out.d/data/ledger.db"}, {"host.follows_dots", "dots"},
		{"host.follows_proc", "proc"}, {"host.follows_swapped_directory", "swapped/data/ledger.db"}, {"host.climbs_out", "../outside/data/ledger.db"},
	} {
		a := attempt{Probe: trap.probe, Outcome: "denied"}
		f, err := root.OpenFile(trap.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			a.Detail = err.Error()
		} else {
			text, _ := io.ReadAll(io.LimitReader(f, 4096))
			f.Close()
			a.Detail = fmt.Sprintf("%d bytes were read", len(text))
			if bytes.Contains(text, []byte(c.Secret)) {
				a.Outcome = "allowed"
			}
		}
		r.Attempts = append(r.Attempts, a)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "out"))
	r.Live = bytes.Contains(text, []byte(c.Secret))
}

// required starts a program where nothing may be started in less than a full
// cage, and returns the code of the error, if any.
func (s settings) required() (string, error) {
	box, err := sandbox.New(sandbox.Options{Mode: sandbox.Required, Dir: filepath.Join(s.Dir, "runtime")})
	if err != nil {
		return "", err
	}
	defer box.Close()
	var out bytes.Buffer
	p, _, err := start(box, s.spec("whoami"), strings.NewReader(""), &out, io.Discard, 5*time.Second)
	if err != nil {
		return string(plugin.CodeOf(err)), nil
	}
	p.Release()
	return "", nil
}

// survivors starts a tree of processes that leave their group and their session
// in every way, kills it, and looks who is still there.
func (s settings) survivors(box *sandbox.Sandbox, r *run) error {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := box.Start(context.Background(), s.spec("survive", s.Mark), sandbox.Files{Stdin: null, Stdout: theirs, Stderr: null})
	theirs.Close()
	if err != nil {
		return fmt.Errorf("starting the tree: %w", err)
	}
	ready := make([]byte, 256)
	_ = ours.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, err := ours.Read(ready)
	if err != nil {
		return fmt.Errorf("waiting for the tree: %w", err)
	}
	if string(ready[:n]) != "ready\n" {
		return fmt.Errorf("the tree said %q", ready[:n])
	}
	// The last of them is the child of one that has ended.
	var grown map[string]int
	for range 500 {
		if grown = canary.Lingering(s.Mark); !slices.ContainsFunc(lingerers, func(who string) bool { return grown[who] == 0 }) {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	for _, who := range lingerers {
		if grown[who] == 0 {
			return fmt.Errorf("of the tree, only %v was to be seen", grown)
		}
	}
	p.Kill()
	p.Wait()
	p.Release()
	var left map[string]int
	for range 20 { // two seconds at most
		if left = canary.Lingering(s.Mark); len(left) == 0 {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	for _, who := range lingerers {
		a := attempt{Probe: "survivor." + who, Outcome: "denied", Detail: "gone"}
		if pid, ok := left[who]; ok {
			a = attempt{Probe: "survivor." + who, Outcome: "allowed", Detail: fmt.Sprintf("process %d lives", pid)}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		r.Attempts = append(r.Attempts, a)
	}
	return nil
}

// lingerers are the processes of the tree, by what they are to its root.
var lingerers = []string{"child", "group", "session", "orphan"}

// start runs a program to its end, with a pipe for each of its files, and kills
// it when its time is up.
func start(box *sandbox.Sandbox, spec sandbox.Spec, in io.Reader, out, problem io.Writer, limit time.Duration) (*sandbox.Process, string, error) {
	var ends [6]*os.File // ours and theirs, of each
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, "", err
		}
		ends[2*i], ends[2*i+1] = r, w
	}
	p, err := box.Start(context.Background(), spec, sandbox.Files{Stdin: ends[0], Stdout: ends[3], Stderr: ends[5]})
	for _, theirs := range []*os.File{ends[0], ends[3], ends[5]} {
		theirs.Close()
	}
	if err != nil {
		for _, ours := range []*os.File{ends[1], ends[2], ends[4]} {
			ours.Close()
		}
		return nil, "", fmt.Errorf("starting %s: %w", spec.Argv[0], err)
	}
	copied := make(chan error, 3)
	go func() { _, err := io.Copy(ends[1], in); ends[1].Close(); copied <- err }()
	go func() { _, err := io.Copy(out, ends[2]); copied <- err }()
	go func() { _, err := io.Copy(problem, ends[4]); copied <- err }()
	timer := time.AfterFunc(limit, p.Kill)
	end := p.Wait()
	if !timer.Stop() {
		err = errors.New("it did not end within " + limit.String())
	}
	for _, ours := range []*os.File{ends[2], ends[4]} { // a survivor may hold the other end
		_ = ours.SetReadDeadline(time.Now().Add(time.Second))
	}
	for range 3 {
		<-copied
	}
	return p, end.String(), err
}
