package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A Server is a PostgreSQL server.
type Server struct {
	bin  string // of initdb and pg_ctl
	dir  string // holds the data, the socket and the log
	cred *syscall.Credential

	watcher *exec.Cmd
	pipe    io.Closer // the watcher's standard input
}

// watch is the watcher: when its input ends, so do the server and the directory.
const watch = `cat >/dev/null; "$1"/pg_ctl stop -D "$2"/data -m immediate -s >/dev/null 2>&1; rm -rf "$2"`

// config is for many small databases; what is not here is as it is delivered.
const config = `
listen_addresses = ''
max_connections = 200
shared_buffers = 64MB
fsync = on
log_line_prefix = '%m %d '
`

func start() (_ *Server, err error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	// Not in a test's own directory: the path of a socket must be short.
	if s.dir, err = os.MkdirTemp("", "mortise-pg-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.cred, err = ordinary(); err != nil {
		return nil, err
	}
	if s.cred != nil {
		if err := os.Chown(s.dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			return nil, err
		}
	}
	s.watcher = s.command("sh", "-c", watch, "watch", bin, s.dir)
	if s.pipe, err = s.watcher.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.watcher.Start(); err != nil {
		return nil, err
	}
	if err := s.run("initdb", "-D", s.data(), "-U", super, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(f, "%sunix_socket_directories = '%s'\n", config, s.dir)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if err := s.up(); err != nil {
		return nil, err
	}
	return s, s.run("psql", "-h", s.dir, "-U", super, "-d", "postgres", "-q", "-c", "CREATE ROLE "+owner+" LOGIN")
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s&sslmode=disable&connect_timeout=60", super, database, s.dir)
}

func (s *Server) up() error {
	return s.run("pg_ctl", "start", "-D", s.data(), "-l", filepath.Join(s.dir, "log"), "-w", "-t", "60", "-s")
}

// Stop ends the server: "fast" for an orderly end, "immediate" for a crash.
func (s *Server) Stop(t testing.TB, mode string) {
	t.Helper()
	if err := s.run("pg_ctl", "stop", "-D", s.data(), "-m", mode, "-w", "-s"); err != nil {
		t.Fatal(err)
	}
}

// Start starts it again.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.up(); err != nil {
		t.Fatal(err)
	}
}

// Pause stops all processes of the server where they are, as a machine that hangs
// does, and Resume lets them go on.
func (s *Server) Pause(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Resume ends a pause.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		t.Error(err)
		return
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Error(err)
		return
	}
	// The postmaster first: while it is stopped it starts no other.
	_ = syscall.Kill(pid, sig)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == first {
			if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				_ = syscall.Kill(child, sig)
			}
		}
	}
}

// close lets the watcher end everything, and waits for it.
func (s *Server) close() {
	if s.pipe == nil {
		os.RemoveAll(s.dir)
		return
	}
	s.pipe.Close()
	s.watcher.Wait()
}

// command is one that runs as an ordinary user, and out of reach of the
// terminal's signals.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setsid: true}
	return cmd
}

// run runs one of the server's programs. What it leaves running must not hold
// our ends of pipes, so it writes to a file.
func (s *Server) run(name string, args ...string) error {
	out, err := os.CreateTemp(s.dir, name)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := s.command(filepath.Join(s.bin, name), args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return fmt.Errorf("%s: %w\n%s%s", name, err, text, log)
	}
	return nil
}

// ordinary returns an unprivileged user to run as if we are root, since PostgreSQL
// refuses to run as root.
func ordinary() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("PostgreSQL does not run as root, and the system has no user postgres or nobody: %w", err)
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// find returns where the server's programs are. On Debian it installs them, if
// it may.
func find() (string, error) {
	if bin := look(); bin != "" {
		return bin, nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", errors.New("no PostgreSQL server is installed: initdb is not in PATH nor in /usr/lib/postgresql; install the package postgresql")
	}
	fmt.Fprintln(os.Stderr, "installing postgresql, which the tests need")
	cmd := exec.Command(apt, "install", "-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", "postgresql")
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("no PostgreSQL server is installed, and apt-get did not install one: %w: %s", err, lines[len(lines)-1])
	}
	if bin := look(); bin != "" {
		return bin, nil
	}
	return "", errors.New("postgresql was installed and has no initdb")
}

func look() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && whole(filepath.Dir(path)) {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for i := len(found) - 1; i >= 0; i-- {
		if whole(found[i]) {
			return found[i]
		}
	}
	return ""
}

func whole(bin string) bool {
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return false
		}
	}
	return true
}
