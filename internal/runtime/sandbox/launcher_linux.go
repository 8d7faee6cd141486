package sandbox

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/carried"
	_ "github.com/mortise-dev/mortise/internal/runtime/sandbox/launcher" // for a host that is its own
)

// What make build put there: bin/cage, the launcher as a program of 2 MB. A host
// that was built without it (go build, go install) is its own launcher: package
// launcher is in it as well, and its processes start slower and are larger.
//
//go:embed all:bin
var bin embed.FS

// ownProgram is what this process executes, whatever became of its file.
const ownProgram = "/proc/self/exe"

// A launcher is the program that becomes one, where it can be executed and
// cannot be changed.
type launcher struct {
	once sync.Once
	err  error
	path string   // of a file on the disk, or of this program itself; empty where it is in memory
	file *os.File // in memory; nil where it is a file on the disk
}

// open makes the launcher ready, once.
func (l *launcher) open(dir string) error {
	l.once.Do(func() {
		code, err := bin.ReadFile("bin/cage")
		if err != nil {
			l.path = ownProgram
			return
		}
		l.err = l.keep(dir, code)
	})
	return l.err
}

func (l *launcher) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

// keep puts the launcher into memory, sealed; where the system does not run
// what is there, into a file that only its owner can change. No process is started meanwhile:
// one that had it open for writing would keep the system from executing it.
func (l *launcher) keep(dir string, code []byte) error {
	file, err := inMemory(code)
	if err != nil {
		return err
	}
	if file == nil {
		return l.keepFile(dir, code)
	}
	l.file = file
	return nil
}

// inMemory returns the launcher in memory, open for reading; nil where the system cannot keep it
// there.
func inMemory(code []byte) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.MemfdCreate("mortise-cage", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("mortise-cage", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, nil
	}
	file := os.NewFile(uintptr(fd), "mortise-cage")
	defer file.Close()
	if _, err := file.Write(code); err != nil {
		return nil, fmt.Errorf("the launcher of cages cannot be kept in memory: %w", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("the launcher of cages cannot be sealed: %w", err)
	}
	// Open it again for reading: what is open for writing cannot be executed.
	read, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil
	}
	return os.NewFile(uintptr(read), "mortise-cage"), nil
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
		if err := carried.Write(path, code); err != nil {
			return fmt.Errorf("writing the launcher of cages: %w", err)
		}
	}
	l.path = path
	return nil
}
