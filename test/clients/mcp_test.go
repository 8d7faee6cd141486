package clients_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// gated asks bob about desk/gated. Those in confirming may also answer for themselves.
const gated = `
@id("run") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"desk") unless { resource == Operation::"desk/gated" };
@id("seen") permit (principal, action == Action::"list", resource == Operation::"desk/gated");
@id("gate") @approval("it is gated") permit (principal, action == Action::"execute", resource == Operation::"desk/gated");
@id("bob_decides") permit (principal == User::"bob", action == Action::"approve", resource);
@id("own") @self("allow") permit (principal in Group::"confirming", action == Action::"approve", resource == Operation::"desk/gated");
`

// The official clients for TypeScript list, call, are asked (form, page, task, pending result), poll
// and cancel, on the newest revision and on the one before it.
func TestTheClientsOfMCPInTypeScriptAreAsked(t *testing.T) {
	t.Parallel()
	dir := clientsOfMCP(t)
	cases := []struct {
		name, client, who string
		confirms          bool
		calls             string // how the calls of who stand on the host afterwards, the newest first
	}{
		{name: "use", client: "2026-07-28", who: "u1"},
		{name: "use", client: "2025-11-25", who: "u9"},
		{name: "use", client: "first", who: "u10"},
		{name: "use over stdio", client: "2026-07-28", who: "u2"},
		{name: "accept", client: "2026-07-28", who: "c1", confirms: true, calls: "succeeded"},
		{name: "decline", client: "2026-07-28", who: "c2", confirms: true, calls: "failed approval_denied"},
		{name: "page", client: "2026-07-28", who: "u3", calls: "succeeded"},
		{name: "task", client: "2026-07-28", who: "u4", calls: "failed cancelled, succeeded"},
		{name: "pending", client: "2026-07-28", who: "u5", calls: "succeeded"},
		{name: "pending", client: "2025-11-25", who: "c3", confirms: true, calls: "succeeded"},
		{name: "pending", client: "first", who: "c4", confirms: true, calls: "succeeded"},
		{name: "cancel", client: "2026-07-28", who: "u6"},
		{name: "cancel", client: "2025-11-25", who: "u7"},
		{name: "cancel", client: "first", who: "u8"},
		{name: "cancel over stdio", client: "2026-07-28", who: "u11"},
		{name: "cancel over stdio", client: "2025-11-25", who: "u12"},
	}
	var people, confirming []string
	for _, c := range cases {
		people = append(people, c.who)
		if c.confirms {
			confirming = append(confirming, c.who)
		}
	}
	h := begin(t, testinput.Host(t), map[string]string{
		"gated.cedar": gated,
		"mortise.yaml": fmt.Sprintf("sandbox: best-effort\npolicy: {default: none, files: [gated.cedar], groups: {people: [%s], confirming: [%s]}}\napprovals: {by: [bob]}\n",
			strings.Join(people, ", "), strings.Join(confirming, ", ")),
	})
	h.serve(t)
	bob := h.token(t, "bob", "approve")
	for _, c := range cases {
		t.Run(c.name+"/"+c.client, func(t *testing.T) {
			t.Parallel()
			scopes := []string{"run", "read"}
			if c.confirms {
				scopes = append(scopes, "approve")
			}
			token := h.token(t, c.who, scopes...)
			converse(t, dir, func(line string) string {
				verb, of, _ := strings.Cut(line, " ")
				switch verb {
				case "approve":
					h.ask(t, bob, http.MethodPost, "approvals/"+of+":approve")
					return "approved"
				case "recorded":
					return h.recorded(t, c.who, of)
				}
				return ""
			}, "wait.mjs", c.name, c.client, h.server, token, h.binary)
			if calls := h.calls(t, token); calls != c.calls {
				t.Errorf("the calls stand as %q, want %q", calls, c.calls)
			}
		})
	}
}

// converse runs a program of Node.js until it says that it is done, and answers its other lines.
func converse(t *testing.T, dir string, reply func(line string) string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var last string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		last = lines.Text()
		if last != "done" {
			_, _ = fmt.Fprintln(in, reply(last)) // Wait reports a program that has ended
		}
	}
	if err := cmd.Wait(); err != nil || last != "done" {
		t.Fatalf("it ends with %q, %v\n%s", last, err, errs.String())
	}
}

// token creates a token for a principal.
func (h *host) token(t *testing.T, who string, scopes ...string) string {
	t.Helper()
	args := []string{"--home", h.home, "tokens", "create", who, "--for", who}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	return run(t, ".", h.binary, args...)
}

// ask sends a request to the API, and returns its answer.
func (h *host) ask(t *testing.T, token, method, path string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.server+"/api/v1/"+path, nil)
	if err != nil {
		t.Error(err)
		return nil
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s %s: %d %s %v", method, path, res.StatusCode, body, err)
	}
	return body
}

// calls says how the calls of desk/gated stand that a token may see, the newest first.
func (h *host) calls(t *testing.T, token string) string {
	t.Helper()
	var page struct {
		Calls []struct{ State, Code string }
	}
	if body := h.ask(t, token, http.MethodGet, "calls?operation=desk/gated"); body != nil {
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	var all []string
	for _, c := range page.Calls {
		all = append(all, strings.TrimSpace(c.State+" "+c.Code))
	}
	return strings.Join(all, ", ")
}

// recorded waits for the ledger to have a call of an operation by a principal, and says how it ended.
func (h *host) recorded(t *testing.T, who, operation string) string {
	t.Helper()
	var entry string
	testwait.Until(t, "the ledger has the call", func() bool {
		entry = h.entry(t, who, operation)
		return entry != ""
	})
	return entry
}

func (h *host) entry(t *testing.T, who, operation string) (said string) {
	t.Helper()
	var page struct {
		Entries []struct {
			Kind, Principal string
			Body            struct {
				Origin string
				Error  struct{ Code string }
			}
		}
	}
	text := run(t, ".", h.binary, "--home", h.home, "ledger", "list", "--operation", operation, "--json")
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, e := range page.Entries {
		if e.Principal == who {
			said = strings.Join([]string{e.Kind, e.Body.Error.Code, e.Body.Origin}, " ")
		}
	}
	return said
}
