package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
	"github.com/mortise-dev/mortise/internal/surface/cli"
)

// TestConnectAnAccount goes through the life of an account: it is connected,
// seen, tried and removed, and no command says its token.
func TestConnectAnAccount(t *testing.T) {
	t.Parallel()
	server := accounttest.New(t)
	home := t.TempDir()
	config := fmt.Sprintf("auth:\n  providers:\n    mail: {client_id: %s, client_secret_name: client, issuer: %q}\n", accounttest.ClientID, server.URL)
	if err := os.WriteFile(filepath.Join(home, "mortise.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	all := ""
	run := func(status int, in string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		got := cli.Main(append(args, "--home", home), strings.NewReader(in), &out, &errs)
		all += out.String() + errs.String()
		if got != status {
			t.Fatalf("%q: status %d, want %d\n%s%s", args, got, status, &out, &errs)
		}
		return out.String() + errs.String()
	}
	want := func(text string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%q is not in\n%s", word, text)
			}
		}
	}
	run(0, accounttest.ClientSecret, "secrets", "set", "client", "--system", "--plugin", ":providers")
	want(run(0, "", "accounts", "list"), "mail", "not connected")
	want(run(3, "", "accounts", "test", "mail"), "missing_identity", "mortise connect mail")
	want(run(3, "", "connect", "fax", "--no-browser"), "missing_identity", "fax", "mortise.yaml", "mail")

	r, w := io.Pipe()
	browsed := make(chan error, 1)
	go func() { // a user who agrees
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			if !strings.HasPrefix(lines.Text(), server.URL) {
				continue
			}
			resp, err := http.Get(lines.Text())
			if err == nil {
				err = resp.Body.Close()
			}
			browsed <- err
		}
		io.Copy(io.Discard, r)
	}()
	var out bytes.Buffer
	status := cli.Main([]string{"connect", "mail", "--scopes", "mail.read mail.send", "--no-browser", "--home", home}, strings.NewReader(""), &out, w)
	w.Close()
	if err := <-browsed; status != 0 || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	all += out.String()
	want(out.String(), "mail is connected as ada@example.com", "mail.read", "mail.send")

	want(run(0, "", "accounts", "list", "--json"), `"email":`, "ada@example.com", "mail.send")
	want(run(0, "", "accounts", "test", "mail"), "mail gives a token as user for ada@example.com")
	want(run(3, "", "accounts", "test", "mail", "--scopes", "mail.delete"), "without mail.delete")
	if text := run(0, "", "secrets", "list"); strings.Contains(text, ":accounts") {
		t.Errorf("the account is among the secrets:\n%s", text)
	}
	want(run(0, "", "accounts", "remove", "mail"), "ada@example.com with mail is gone")
	want(run(0, "", "accounts", "list"), "not connected")
	if server.Left() != 0 {
		t.Errorf("%d tokens are good still", server.Left())
	}
	want(run(0, "", "ledger", "list"), "secret.set", "secret.deleted")
	given := server.Given()
	if len(given) < 4 {
		t.Errorf("%d tokens were given out", len(given))
	}
	for _, token := range append(given, accounttest.ClientSecret) {
		if strings.Contains(all, token) {
			t.Errorf("a command says %.12q…", token)
		}
	}
}
