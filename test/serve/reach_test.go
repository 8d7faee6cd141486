package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// elsewhere runs a command at a URL, with the node's token.
func (n *node) elsewhere(server string, args ...string) (out, errs string, status int) {
	n.Helper()
	cmd := exec.Command(self(n.T), append([]string{"mortise", "--server", server}, args...)...)
	cmd.Env = append(os.Environ(), "MORTISE_TOKEN="+n.token, "MORTISE_HOME=", "MORTISE_CONFIG=", "MORTISE_AS=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		n.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// A command line that asks a host of another version says so, and goes on: what the host
// does not know is refused.
func TestAHostOfAnotherVersionIsTold(t *testing.T) {
	n := begin(t, "")
	to, err := url.Parse(n.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	proxy.ModifyResponse = func(resp *http.Response) error {
		if !strings.HasSuffix(resp.Request.URL.Path, "/me") {
			return nil
		}
		var me map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&me); err != nil {
			return err
		}
		me["version"] = "0.0.9"
		raw, err := json.Marshal(me)
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		resp.Header.Del("Content-Length")
		return err
	}
	older := httptest.NewServer(proxy)
	defer older.Close()
	const says = "is of version 0.0.9: what one of them does not know is refused; use the same version of both"
	if _, errs, status := n.elsewhere(older.URL, "calls", "list"); status != 0 || !strings.Contains(errs, says) {
		t.Errorf("%d %s", status, errs)
	}
	if _, errs, status := n.elsewhere(n.url, "calls", "list"); status != 0 || strings.Contains(errs, "version") {
		t.Errorf("one of the same version: %d %s", status, errs)
	}
}

// What a host that was killed left behind keeps no command from going without it.
func TestASocketOnWhichNothingListens(t *testing.T) {
	n := begin(t, "")
	if out := n.must("version", "--json"); !strings.Contains(out, `"manner":"socket"`) {
		t.Fatal(out)
	}
	n.end(syscall.SIGKILL)
	for _, left := range []string{"serve.lock", "run/owner.sock"} {
		if _, err := os.Lstat(filepath.Join(n.home, left)); err != nil {
			t.Fatal(err)
		}
	}
	if out := n.must("version", "--json"); !strings.Contains(out, `"manner":"embedded"`) {
		t.Errorf("after the host was killed: %s", out)
	}
	n.must("calls", "list")
}

// A host that hangs is not waited for without an end, and the command says what can be done.
func TestAHostThatHangs(t *testing.T) {
	n := begin(t, "")
	if err := n.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, errs, status := n.run("calls", "list")
	if err := n.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if status != 8 || !strings.Contains(errs, "has not answered for 10s: it hangs, or was stopped; --embedded goes without it") {
		t.Errorf("%d %s", status, errs)
	}
	n.must("calls", "list")
	n.end(syscall.SIGTERM)
}

// Another user of the machine hears that the data directory is not theirs, and how its host
// is asked; the message is the same whether they may look into it.
func TestADataDirectoryOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a test that acts as another user of the operating system needs root")
	}
	n := begin(t, "")
	program, err := os.MkdirTemp("/tmp", "other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(program) })
	raw, err := os.ReadFile(self(t))
	if err == nil {
		err = os.WriteFile(filepath.Join(program, "mortise"), raw, 0o755) //nolint:gosec // the other user runs it
	}
	if err == nil {
		err = os.Chmod(program, 0o755) //nolint:gosec // likewise
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o700, 0o755} {
		if err := os.Chmod(n.home, mode); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(program, "mortise"), "mortise", "--home", n.home, "ledger", "list")
		cmd.Env, cmd.Dir = []string{"HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status == 0 || !strings.Contains(string(out), "is the data directory of another user of this machine, and not open to this one: 'mortise login --server URL'") {
			t.Errorf("with mode %o: %d %s", mode, status, out)
		}
	}
}
