package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/server"
	"github.com/mortise-dev/mortise/plugin"
)

// ownerSocket serves the owner's socket of a data directory, and returns its path.
func ownerSocket(t *testing.T, home string) string {
	t.Helper()
	l, err := server.ListenOwner(home)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "owner") })
	go func() {
		ended <- server.Serve(ctx, l, server.New(server.Options{Agents: &desk{}, API: api}), nil, 0, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	path, err := server.OwnerSocket(home)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// over asks for a path over a socket.
func over(t *testing.T, socket string) (status int, text string, err error) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("http://localhost/api/v1/calls")
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

// The owner's socket is in a directory that its owner alone can enter; one that is there
// with other modes is refused, and a data directory of any depth has a socket.
func TestTheOwnersSocketIsTheOwners(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := ownerSocket(t, home)
	for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has %v, %v, want %o", file, info.Mode(), err, want)
		}
	}
	if status, text, err := over(t, path); status != 200 || text != "owner" || err != nil {
		t.Errorf("the owner is answered %d %s, %v", status, text, err)
	}
	open := t.TempDir()
	if err := os.Mkdir(filepath.Join(open, "run"), 0o755); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(open, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := server.ListenOwner(open); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory that others may enter: %v", err)
	}
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	if status, _, err := over(t, ownerSocket(t, deep)); status != 200 || err != nil {
		t.Errorf("a deep data directory: %d, %v", status, err)
	}
}

// Another user of the operating system is refused although the modes of all files let
// them connect.
func TestAnotherUserIsRefusedOnTheOwnersSocket(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("a test that acts as another user of the operating system needs root")
	}
	home, err := os.MkdirTemp("/tmp", "own")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	path := ownerSocket(t, home)
	for file, mode := range map[string]os.FileMode{home: 0o755, filepath.Dir(path): 0o755, path: 0o777} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	heard := make(chan string, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		const other = 65534
		if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, other, other, other); failed != 0 {
			heard <- failed.Error()
			return
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			heard <- err.Error()
			return
		}
		defer conn.Close()
		raw, _ := io.ReadAll(conn)
		heard <- string(raw)
	}()
	if text := <-heard; !strings.HasPrefix(text, "HTTP/1.1 403 ") || !strings.Contains(text, "no other") {
		t.Errorf("another user is answered %q", text)
	}
	if status, _, err := over(t, path); status != 200 || err != nil {
		t.Errorf("then the owner is answered %d, %v", status, err)
	}
}
