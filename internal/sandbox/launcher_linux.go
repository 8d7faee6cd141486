package sandbox

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What make build put there: bin/cage. A host that was built without it looks
// for its own source.
//
//go:embed all:bin
var carried embed.FS

// A launcher is the program cmd/cage, where it can be executed and nobody can
// change it.
type launcher struct {
	once sync.Once
	err  error
	path string   // of a file on the disk; empty where it is in memory
	file *os.File // in memory; nil where it is a file on the disk
}

// open makes the launcher ready, once.
func (l *launcher) open(dir string) error {
	l.once.Do(func() {
		var code []byte
		if code, l.err = launcherCode(); l.err == nil {
			l.err = l.keep(dir, code)
		}
	})
	return l.err
}

func (l *launcher) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

// keep puts the launcher into memory, sealed; where the system does not run
// what is there, into a file that only its owner can change.
func (l *launcher) keep(dir string, code []byte) error {
	fd, err := unix.MemfdCreate("mortise-cage", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("mortise-cage", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return l.keepFile(dir, code)
	}
	file := os.NewFile(uintptr(fd), "mortise-cage")
	defer file.Close()
	if _, err := file.Write(code); err != nil {
		return fmt.Errorf("the launcher of cages cannot be kept in memory: %w", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("the launcher of cages cannot be sealed: %w", err)
	}
	// Open it anew for reading: what is open for writing cannot be executed.
	read, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return l.keepFile(dir, code)
	}
	l.file = os.NewFile(uintptr(read), "mortise-cage")
	return nil
}

// keepFile writes the launcher where it is not there, or is not itself.
func (l *launcher) keepFile(dir string, code []byte) error {
	if dir == "" {
		return errors.New("the launcher of cages can be kept neither in memory nor on the disk")
	}
	path, err := filepath.Abs(filepath.Join(dir, "cage"))
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(path); err != nil || sha256.Sum256(have) != sha256.Sum256(code) {
		if err := writeProgram(path, code); err != nil {
			return fmt.Errorf("writing the launcher of cages: %w", err)
		}
	}
	l.path = path
	return nil
}

func writeProgram(path string, code []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".cage-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(code)
	if err == nil {
		err = temp.Chmod(0o500)
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	return err
}

// launcherCode returns the launcher that this host carries or, in a checkout
// of the source, one that is built from it.
func launcherCode() ([]byte, error) {
	code, err := carried.ReadFile("bin/cage")
	if errors.Is(err, fs.ErrNotExist) {
		code, err = buildLauncher()
	}
	if err != nil {
		return nil, fmt.Errorf("there is no launcher of cages (%w): build the host with make build", err)
	}
	return code, nil
}

// Places of the source, from the root of the module.
var launcherSource = []string{"cmd/cage", "internal/sandbox/wire"}

// buildLimit is how long the go tool may take.
const buildLimit = 2 * time.Minute

// buildLauncher builds the launcher in the checkout that this package was
// compiled in, once for each state of its source.
func buildLauncher() ([]byte, error) {
	_, self, _, ok := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(self)))
	if !ok || !filepath.IsAbs(self) {
		return nil, errors.New("this host does not carry it")
	}
	hash := sha256.New()
	for _, dir := range launcherSource {
		names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(names) == 0 {
			return nil, errors.New("this host does not carry it")
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
		}
	}
	out := filepath.Join(root, "bin", fmt.Sprintf("cage-%x", hash.Sum(nil)[:8]))
	if code, err := os.ReadFile(out); err == nil {
		return code, nil
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(out), ".cage-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	built := filepath.Join(temp, "cage")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", built, "./cmd/cage")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if home, err := os.UserHomeDir(); err != nil || !isDir(home) {
		cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(os.TempDir(), "mortise-gocache"), "GOFLAGS=-mod=mod", "GOPATH="+filepath.Join(os.TempDir(), "mortise-gopath"))
	}
	var words bytes.Buffer
	cmd.Stderr = &words
	cmd.WaitDelay = time.Second
	timer := time.AfterFunc(buildLimit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w: %.300s", err, words.String())
	}
	if err := os.Rename(built, out); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
