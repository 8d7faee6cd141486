package serve

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// While requests come without a pause the configuration is read again 20 times, half of them
// by a signal: no request fails. Each time another principal is named and the last one is
// not any more. The token of the new one is accepted as soon as the command returns, and
// that of the one who is gone is refused.
func TestNoRequestFailsWhileTheConfigurationIsReadAgain(t *testing.T) {
	n := prepare(t, "")
	const rounds = 20
	names := make([]string, rounds)
	tokens := make([]string, rounds)
	for i := range names {
		names[i] = fmt.Sprintf("guest%d", i)
	}
	people := func(names ...string) string {
		return strings.Replace(config, "people: [ann, bob]", "people: [ann, bob, "+strings.Join(names, ", ")+"]", 1)
	}
	n.write("mortise.yaml", people(names...)) // to make their tokens
	n.must("plugins", "register", n.desk+"/source")
	n.token = strings.TrimSpace(n.must("tokens", "create", "test", "--for", "ann", "--scope", "admin"))
	for i, name := range names {
		tokens[i] = strings.TrimSpace(n.must("tokens", "create", "test", "--for", name, "--scope", "run"))
	}
	n.write("mortise.yaml", config)
	n.serve()

	stop := make(chan struct{})
	var load sync.WaitGroup
	var made atomic.Int64
	for i := range 8 {
		load.Go(func() {
			for j := 0; ; j++ {
				select {
				case <-stop:
					return
				default:
				}
				operation := []string{"upper", "line"}[j%2]
				a := n.execute(operation, fmt.Sprintf("w%d-%d", i, j))
				if a.err != nil || a.status != http.StatusOK || a.member("status") != "succeeded" {
					t.Errorf("a request under way was answered %d %s %v", a.status, a.text, a.err)
					return
				}
				made.Add(1)
			}
		})
	}
	as := func(token string) int {
		a := ask(n.url, token, "POST", "/api/v1/operations/desk/upper:execute", `{"input": {"text": "x"}}`)
		if a.err != nil {
			t.Fatal(a.err)
		}
		return a.status
	}
	for i, name := range names {
		n.write("mortise.yaml", people(name))
		if i%2 == 0 {
			if out := n.must("serve", "reload"); out != "in force now: policy.groups\n" {
				t.Fatalf("round %d: %q", i, out)
			}
		} else {
			if err := n.process.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "the signal is heard", func() bool { return as(tokens[i]) == http.StatusOK })
		}
		if got := as(tokens[i]); got != http.StatusOK {
			t.Fatalf("round %d: who was named is answered %d", i, got)
		}
		if i > 0 {
			if got := as(tokens[i-1]); got != http.StatusUnauthorized {
				t.Fatalf("round %d: who is named no more is answered %d", i, got)
			}
		}
	}
	close(stop)
	load.Wait()
	t.Logf("%d requests in 20 reloads", made.Load())
	if made.Load() < 100 {
		t.Errorf("only %d requests were made: that is no load", made.Load())
	}
	for line, times := range n.left() {
		if times != 1 {
			t.Errorf("%s was left %d times", line, times)
		}
	}
	n.end(syscall.SIGTERM)
}

// What cannot change while the host runs is named, every time; a file that cannot be used
// changes nothing, and neither does one that is gone.
func TestWhatAReloadSays(t *testing.T) {
	n := begin(t, "")
	refused := func(text, why string) {
		t.Helper()
		n.write("mortise.yaml", text)
		out, errs, status := n.run("serve", "reload")
		if status != 2 || out != "" || !strings.Contains(errs, why) {
			t.Errorf("%d %q %q; want a refusal that says %q", status, out, errs, why)
		}
		if a := n.execute("upper", "x"); a.status != http.StatusOK {
			t.Errorf("after it a request is answered %d %s", a.status, a.text)
		}
	}
	if out := n.must("serve", "reload"); out != "nothing changed\n" {
		t.Errorf("%q", out)
	}
	changed := strings.Replace(config, "workers: 32", "workers: 31\nlog: {level: info}\nlimits: {input_bytes: 100}", 1)
	n.write("mortise.yaml", changed)
	if out := n.must("serve", "reload"); out != "in force now: limits.input_bytes, log.level\nneeds a restart: workers\n" {
		t.Errorf("%q", out)
	}
	if out := n.must("serve", "reload", "--json"); out != `{"changed":[],"restart":["workers"]}`+"\n" {
		t.Errorf("%q", out)
	}
	if a := n.execute("upper", strings.Repeat("x", 200)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("an input above the new limit is answered %d %s", a.status, a.text)
	}
	refused("principl: eve\n", "principl")
	refused(changed+"    - and\n", "the one before stays in force")
	refused(strings.Replace(changed, "serve.cedar", "none.cedar", 1), "none.cedar")
	refused(strings.Replace(changed, "people: [ann, bob]", "people: [\"sender:ann\"]", 1), "no principal")
	if a := n.execute("upper", strings.Repeat("x", 200)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("what was refused changed the limit: %d %s", a.status, a.text)
	}
	n.end(syscall.SIGTERM)
	if out, errs, status := n.run("serve", "reload"); status != 8 || out != "" || !strings.Contains(errs, "no host serves") {
		t.Errorf("without a host: %d %q %q", status, out, errs)
	}
}
