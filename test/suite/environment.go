package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// environment is the part of the machine that all parts of a run share.
type environment struct {
	root     string // of the repository
	logs     string
	temp     string // directory of the tests' files; empty: the system's
	mounted  bool
	path     string
	fresh    bool
	packages []string // arguments of set check

	mu       sync.Mutex
	inputs   string // directory of prebuilt programs; empty until they are built
	missing  map[string]error
	prepared map[string]error
}

func newEnvironment(ctx context.Context) (*environment, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	e := &environment{
		root: filepath.Dir(strings.TrimSpace(string(out))), path: os.Getenv("PATH"),
		missing: map[string]error{}, prepared: map[string]error{},
	}
	e.logs = filepath.Join(e.root, "bin", "test", "logs")
	if err := os.MkdirAll(e.logs, 0o755); err != nil {
		return nil, err
	}
	// The python3 of a version manager is a shell script that takes longer to start than
	// most plugins take to run. Tests use the interpreter that it finds.
	script := "import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)))"
	if out, err := exec.CommandContext(ctx, "python3", "-c", script).Output(); err == nil {
		e.path = strings.TrimSpace(string(out)) + string(os.PathListSeparator) + e.path
	}
	e.mountTemp()
	return e, nil
}

// minMemory is the available memory, in KiB, above which tests keep their files
// in memory.
const minMemory = 12 << 20

// mountTemp mounts a file system in memory for the files of tests, because tests
// sync some ten thousand writes and cut no power. It does nothing if the user set
// TMPDIR, is not root, or has too little memory. /dev/shm would not do: a sandbox
// hides the host's /dev. The path is short, because names of sockets are bounded,
// and constant, because cached test results depend on it.
func (e *environment) mountTemp() {
	if os.Getenv("TMPDIR") != "" || os.Getuid() != 0 || runtime.GOOS != "linux" || availableMemory() < minMemory {
		return
	}
	dir := fmt.Sprintf("/tmp/mt%d", crc32.ChecksumIEEE([]byte(e.root))%1000)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return
	}
	mounts, _ := os.ReadFile("/proc/mounts")
	if !bytes.Contains(mounts, []byte(" "+dir+" ")) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=1777,size=8g"); err != nil {
			_ = os.Remove(dir)
			return
		}
	}
	e.temp, e.mounted = dir, true
}

// availableMemory returns the available memory in KiB, or 0 if it is unknown.
func availableMemory() int {
	info, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(info)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return n
		}
	}
	return 0
}

func (e *environment) close() {
	if e.mounted {
		unmount(e.temp)
		_ = os.Remove(e.temp)
	}
}

// variables returns the environment of the commands of a run. GOFLAGS comes from
// the Makefile.
func (e *environment) variables() []string {
	env := append(os.Environ(),
		"PATH="+e.path, "CGO_ENABLED=0",
		"GOGC=300",                 // a third of the time is otherwise spent on collecting the garbage of short processes
		"GORACE=atexit_sleep_ms=0", // each process of a test otherwise stays for a second
	)
	if e.temp != "" {
		env = append(env, "TMPDIR="+e.temp, "GOTMPDIR="+e.temp)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inputs != "" {
		env = append(env, testinput.Variable+"="+e.inputs, "MORTISE_TEST_BINARY="+filepath.Join(e.inputs, "mortise"))
	}
	return env
}
