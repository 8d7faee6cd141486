//go:build linux && amd64

package escape

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// A host is one run, made when a test first asks for it.
type host struct {
	name     string
	mode     sandbox.Mode
	ordinary bool // as an ordinary user, also where the tests run as root
	refuse   bool // as an ordinary user to whom the machine refuses user namespaces

	once sync.Once
	run  *run
	err  error
}

var (
	off      = host{name: "off", mode: sandbox.Off}
	partial  = host{name: "partial", mode: sandbox.BestEffort, ordinary: true, refuse: true}
	ordinary = host{name: "ordinary", mode: sandbox.BestEffort, ordinary: true}
	full     = host{name: "full", mode: sandbox.BestEffort}
)

func (h *host) get(t *testing.T) *run {
	t.Helper()
	h.once.Do(func() {
		h.run, h.err = h.start(h.refuse)
		if h.refuse && (errors.Is(h.err, unix.EPERM) || errors.Is(h.err, unix.ENOSPC)) {
			h.run, h.err = h.start(false) // the machine refuses them by itself
		}
	})
	if h.err != nil {
		t.Fatal(h.err)
	}
	return h.run
}

// ordinaryID is the user id that the hosts of this test run as, if not as root.
const ordinaryID = 65534

// start runs the host in a process. Where user namespaces shall be refused, it is
// in one that has none to give.
func (h *host) start(refuse bool) (*run, error) {
	dir, err := os.MkdirTemp("", "mortise-escape-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	uid, gid := os.Getuid(), os.Getgid()
	if h.ordinary && uid == 0 {
		uid, gid = ordinaryID, ordinaryID
	}
	program, err := prepare(dir, uid, gid)
	if err != nil {
		return nil, err
	}
	s := settings{Dir: dir, Mark: fmt.Sprintf("mortise-%s-%d-%d", h.name, os.Getpid(), time.Now().UnixNano()%1e6), Mode: h.mode, Refuse: refuse}
	told, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "host", s.Mark)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MORTISE_ESCAPE_SETTINGS="+string(told), "NODE_OPTIONS=--inspect", "MORTISE_ESCAPE_CANARY=canary-"+s.Mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if inside, outside, err := terminal(); err == nil { // without one, there is none to reach
		defer inside.Close()
		defer outside.Close()
		cmd.Stdin, cmd.SysProcAttr.Setctty = inside, true
	}
	if uid != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	if refuse {
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.GidMappingsEnableSetgroups = os.Getuid() == 0
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_RESOURCE}
	}
	cmd.WaitDelay = 10 * time.Second
	timer := time.AfterFunc(2*testwait.Limit, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	defer timer.Stop()
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the host %s: %w: %s", h.name, err, said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		return nil, err
	}
	r := &run{}
	return r, json.Unmarshal(text, r)
}

// prepare lays out the directory of a host: this program, and the package with the
// probe, also as a set-user-ID, a set-group-ID and a privileged program. It returns the
// path of this program.
func prepare(dir string, uid, gid int) (string, error) {
	for _, sub := range []string{"package", "scratch", "runtime", "outside"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return "", err
		}
	}
	probe, err := buildProbe()
	if err != nil {
		return "", err
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	program, pkg := filepath.Join(dir, "escape.test"), filepath.Join(dir, "package")
	for path, text := range map[string][]byte{
		program: self, filepath.Join(pkg, "probe"): probe, filepath.Join(pkg, "setuid"): probe,
		filepath.Join(pkg, "setgid"): probe, filepath.Join(pkg, "capable"): probe,
		filepath.Join(pkg, "data.txt"): nil, filepath.Join(pkg, "mode.txt"): nil,
	} {
		if err := os.WriteFile(path, text, 0o755); err != nil {
			return "", err
		}
	}
	if err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	}); err != nil {
		return "", err
	}
	// Where one may not do this, those probes cannot be shown to work.
	_ = os.Chown(filepath.Join(pkg, "setuid"), 12345, gid)
	_ = os.Chmod(filepath.Join(pkg, "setuid"), 0o755|os.ModeSetuid)
	_ = os.Chown(filepath.Join(pkg, "setgid"), uid, 12345)
	_ = os.Chmod(filepath.Join(pkg, "setgid"), 0o755|os.ModeSetgid)
	capability := [20]byte{0: 1, 3: 2, 5: 1 << (unix.CAP_NET_RAW - 8)} // effective and permitted
	_ = unix.Setxattr(filepath.Join(pkg, "capable"), "security.capability", capability[:], 0)
	return program, os.Chmod(dir, 0o755)
}

// buildProbe builds the probe, once.
var buildProbe = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "mortise-probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "probe"), "./probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the probe: %w: %s", err, said)
	}
	return os.ReadFile(filepath.Join(dir, "probe"))
})
