package signin_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/internal/surface/server"
)

// The owner acts on behalf of another principal on their socket, on the record, and no one
// does anywhere else: not with the owner's own token or session, and not a user of the
// operating system that is linked to a principal.
func TestOnlyTheOwnersSocketActsForOthers(t *testing.T) {
	b := begin(t)
	ann, owner := b.person("ann", "ann's account"), b.person("local:owner", "the owner's account")
	a := b.overSocket("GET", "/api/v1/me", "", rest.AsHeader, "ann")
	if a.status != 200 || a.at("principal") != "ann" || a.at("by") != "local:owner" || a.at("owner") != "false" {
		t.Errorf("the owner for ann: %d %s", a.status, a.text)
	}
	if a := b.overSocket("POST", "/api/v1/operations/desk/line:execute", `{"input":{"text":"x"}}`, rest.AsHeader, "ann"); a.status != 202 {
		t.Errorf("the owner calls for ann: %d %s", a.status, a.text)
	}
	if status, out := b.mortise("ledger", "list", "--kind", "call.", "--json"); status != 0 || !strings.Contains(out, `"principal":"ann"`) || !strings.Contains(out, `"by":"local:owner"`) {
		t.Errorf("the entry is %s", out)
	}
	status, out := b.mortise("tokens", "create", "all", "--for", "local:owner", "--scope", "admin", "--json")
	if status != 0 {
		t.Fatal(out)
	}
	token := []string{"Authorization", "Bearer " + answer{text: out}.at("token"), rest.AsHeader, "ann"}
	for what, a := range map[string]answer{
		"no one":                         b.browser().do("GET", "/api/v1/me", "", rest.AsHeader, "ann"),
		"the owner's token":              b.browser().do("GET", "/api/v1/me", "", token...),
		"the owner's session":            owner.do("GET", "/api/v1/me", "", rest.AsHeader, "ann"),
		"ann's session for ann":          ann.do("GET", "/api/v1/me", "", rest.AsHeader, "ann"),
		"a token on the owner's socket":  b.overSocket("GET", "/api/v1/me", "", token...),
		"an empty name of no one":        b.browser().do("GET", "/api/v1/me", "", rest.AsHeader, " "),
		"ann's session for local:owner":  ann.do("GET", "/api/v1/me", "", rest.AsHeader, "local:owner"),
		"the owner's session for itself": owner.do("GET", "/api/v1/me", "", rest.AsHeader, "local:owner"),
	} {
		if a.status != 403 || a.at("code") != "policy_denied" || !strings.Contains(a.at("detail"), "owner's socket") {
			t.Errorf("%s: %d %s", what, a.status, a.text)
		}
	}
	for name, code := range map[string]string{"eve": "unauthenticated", "%zz": "invalid_input"} {
		if a := b.overSocket("GET", "/api/v1/me", "", rest.AsHeader, name); a.status < 400 || a.at("code") != code {
			t.Errorf("the owner for %q: %d %s", name, a.status, a.text)
		}
	}
	t.Run("a linked user of the operating system", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("a test that acts as another user of the operating system needs root")
		}
		const other = 65534
		if status, out := b.mortise("users", "create", "bob", "--os-user", "65534"); status != 0 {
			t.Fatal(out)
		}
		socket, err := server.OwnerSocket(b.app.Home)
		if err != nil {
			t.Fatal(err)
		}
		for file, mode := range map[string]os.FileMode{b.home: 0o755, filepath.Dir(socket): 0o755, socket: 0o777} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
		}
		heard := make(chan string, 1)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, other, other, other); failed != 0 {
				heard <- failed.Error()
				return
			}
			conn, err := net.Dial("unix", socket)
			if err != nil {
				heard <- err.Error()
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nMortise-As: ann\r\nConnection: close\r\n\r\n")
			raw, _ := io.ReadAll(conn)
			heard <- string(raw)
		}()
		if text := <-heard; !strings.HasPrefix(text, "HTTP/1.1 403 ") || !strings.Contains(text, "no other") {
			t.Errorf("they are answered %q", text)
		}
	})
}
