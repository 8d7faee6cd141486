// Command as runs a program as a user without privileges, with a home directory,
// a temporary directory and a build cache of its own. It is a value for the flag
// -exec of go test:
//
//	go build -o bin/test/as ./test/ordinary/as
//	go test -exec "$PWD/bin/test/as" -count=1 -run TestStories ./internal/surface/cli
//
// It ends with the exit status of the program. Started without privileges, it only
// gives the program its directories.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
)

// unprivileged is the user, and its group, that the program runs as.
const unprivileged = 65534

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: as PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	status, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "as:", err)
		status = 1
	}
	os.Exit(status)
}

// run returns the exit status of the program. The error is about the user, not
// about the program.
func run(program string, args []string) (status int, err error) {
	dir, err := os.MkdirTemp("/tmp", "as-") // names of sockets are bounded, so the path is short
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rmtree.Remove(dir)) }()
	// go test compiles into a directory that is closed to others.
	copied := filepath.Join(dir, filepath.Base(program))
	if err := copyProgram(program, copied); err != nil {
		return 0, err
	}
	u := user{home: filepath.Join(dir, "home"), temp: filepath.Join(dir, "t")}
	for _, d := range []string{u.home, u.temp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return 0, err
		}
	}
	if err := u.fillModuleCache(); err != nil {
		return 0, err
	}
	cmd := exec.Command(copied, args...)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
		if err := give(dir); err != nil {
			return 0, err
		}
	}
	cmd.Env = u.environment(os.Environ())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return wait(cmd)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// user has the directories of the user that a program runs as.
type user struct {
	home, temp string
}

// give makes the directory, with everything in it, the user's own.
func give(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, unprivileged, unprivileged))
	})
}

// fillModuleCache copies the modules that a plugin in Go is compiled with, because
// the user may not be able to read the module cache, and tests use no network. It
// does nothing if Go is not installed: stories that need it are then skipped.
func (u user) fillModuleCache() error {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("go env GOMODCACHE: %w", err)
	}
	cache := strings.TrimSpace(string(out))
	format := "{{with .Module}}{{if not .Main}}{{.}}{{end}}{{end}}"
	out, err = exec.Command("go", "list", "-deps", "-f", format, "github.com/mortise-dev/mortise/sdk/go").Output()
	if err != nil {
		return fmt.Errorf("list the modules of the Go SDK: %w", err)
	}
	modules := strings.Split(strings.ReplaceAll(strings.TrimSpace(string(out)), " ", "@"), "\n")
	slices.Sort(modules)
	cmd := exec.Command("go", append([]string{"mod", "download"}, slices.Compact(modules)...)...)
	cmd.Env = append(os.Environ(), "GOFLAGS=-modcacherw",
		"GOMODCACHE="+filepath.Join(u.home, "go", "pkg", "mod"), "GOPROXY=file://"+filepath.Join(cache, "cache", "download"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the modules of the Go SDK: %w\n%s", err, out)
	}
	return nil
}

// environment returns env without what belongs to the user who started this
// program: directories, and programs of a version manager.
func (u user) environment(env []string) []string {
	own := []string{"HOME", "USER", "LOGNAME", "TMPDIR", "GOTMPDIR", "GOCACHE", "GOMODCACHE", "GOPATH", "PYENV_ROOT", "NVM_DIR"}
	kept := slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(own, name) || strings.HasPrefix(name, "XDG_")
	})
	return append(kept, "HOME="+u.home, "TMPDIR="+u.temp, "GOCACHE="+filepath.Join(u.home, "go-build"))
}

// wait starts the program, passes signals on to it and returns its exit status.
// go test sends SIGQUIT to a test that takes too long, which prints its goroutines.
func wait(cmd *exec.Cmd) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s as user %d: %w", cmd.Path, unprivileged, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.Exited() {
				return exit.ExitCode(), nil
			}
			return 0, err
		}
	}
}
