package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// stores are what a node keeps its state in.
var stores = map[string]func(*testing.T) string{
	"SQLite":     func(*testing.T) string { return "" },
	"PostgreSQL": func(t *testing.T) string { return pgtest.Open(t) },
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(*testing.T, *node)) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, begin(t, open(t)))
		})
	}
}

// A key stands for one effect and one answer: of requests one after another, of a hundred at
// once, of another body, and of a body that was refused.
func TestAKeyOverHTTP(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		first := n.execute("line", "one", "Idempotency-Key", "k1")
		if first.status != http.StatusOK || first.member("status") != "succeeded" || first.header.Get("Idempotency-Replayed") != "" {
			t.Fatalf("the first: %d %s", first.status, first.text)
		}
		again := n.execute("line", "one", "Idempotency-Key", "k1")
		if again.status != http.StatusOK || again.text != first.text || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the same again is answered %d\n%s\nand the first was\n%s", again.status, again.text, first.text)
		}
		if other := n.execute("line", "two", "Idempotency-Key", "k1"); other.status != http.StatusUnprocessableEntity || other.member("code") != "key_conflict" {
			t.Errorf("another body: %d %s", other.status, other.text)
		}
		wrong := ask(n.url, n.token, "POST", "/api/v1/operations/desk/line:execute", `{"input": {"text": 7}}`, "Idempotency-Key", "k2")
		if wrong.status != http.StatusUnprocessableEntity || wrong.member("code") != "invalid_input" {
			t.Errorf("a body that the schema refuses: %d %s", wrong.status, wrong.text)
		}
		if right := n.execute("line", "three", "Idempotency-Key", "k2"); right.status != http.StatusOK || right.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("a refusal used the key up: %d %s", right.status, right.text)
		}
		answers := make([]answer, 100)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = n.execute("line", "hundred", "Idempotency-Key", "k3") })
		}
		all.Wait()
		for i, a := range answers {
			if a.err != nil || a.status != http.StatusOK || a.text != answers[0].text {
				t.Errorf("number %d of a hundred is answered %d %s %v", i, a.status, a.text, a.err)
			}
		}
		want := map[string]int{"one": 1, "three": 1, "hundred": 1}
		if got := n.left(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the effects are %v, want %v", got, want)
		}
		n.end(syscall.SIGTERM)
	})
}

// A host is killed between the claim of a call and its answer, after the effect. Who asks
// the next host with the same key gets the outcome, which is unknown, and never a second
// effect: at once, again, and under another body the refusal. A call that was not begun when
// the host was killed is made once.
func TestAKeyWhoseHostWasKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		const held = 5
		lost := make([]answer, held)
		var all sync.WaitGroup
		for i := range held {
			all.Go(func() { lost[i] = n.execute("hold", fmt.Sprint("held", i), "Idempotency-Key", fmt.Sprint("h", i)) })
		}
		testwait.Until(t, "the effects have happened", func() bool { return len(n.left()) == held })
		n.end(syscall.SIGKILL)
		all.Wait()
		for i, a := range lost {
			if a.err == nil {
				t.Errorf("number %d was answered by a host that was killed: %d %s", i, a.status, a.text)
			}
		}
		if err := os.WriteFile(filepath.Join(n.desk, "go"), nil, 0o600); err != nil { // the next would not be held
			t.Fatal(err)
		}
		n.serve()
		outcomes := make([]answer, held)
		for i := range held {
			all.Go(func() {
				outcomes[i] = n.execute("hold", fmt.Sprint("held", i), "Idempotency-Key", fmt.Sprint("h", i), "Prefer", "wait=60")
			})
		}
		all.Wait()
		for i, a := range outcomes {
			if a.err != nil || a.status != http.StatusOK || a.member("status") != "unknown" && a.member("status") != "succeeded" {
				t.Errorf("number %d again: %d %s %v", i, a.status, a.text, a.err)
				continue
			}
			again := n.execute("hold", fmt.Sprint("held", i), "Idempotency-Key", fmt.Sprint("h", i))
			if again.text != a.text || again.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("number %d a third time:\n%s\nthe second was\n%s", i, again.text, a.text)
			}
			if other := n.execute("hold", "other", "Idempotency-Key", fmt.Sprint("h", i)); other.status != http.StatusUnprocessableEntity {
				t.Errorf("number %d with another body: %d %s", i, other.status, other.text)
			}
			if found := ask(n.url, n.token, "GET", "/api/v1/calls/"+a.member("call_id"), ""); found.status != http.StatusOK || found.member("status") != a.member("status") {
				t.Errorf("number %d under its id: %d %s", i, found.status, found.text)
			}
		}
		for line, times := range n.left() {
			if times != 1 {
				t.Errorf("%s happened %d times", line, times)
			}
		}
		if fresh := n.execute("line", "fresh", "Idempotency-Key", "f"); fresh.status != http.StatusOK || n.left()["fresh"] != 1 {
			t.Errorf("a key that was not used: %d %s", fresh.status, fresh.text)
		}
		n.must("ledger", "verify")
		n.end(syscall.SIGTERM)
	})
}

// A host that is told to end while more than 200 requests are under way answers each that it
// accepted: with how its call ended where the time to drain is enough, and else with where it
// is found. One that is cut off all the same is found under its key by the next host. No
// effect happens twice, and what was answered is so.
func TestEndingUnderLoadLosesNoRequest(t *testing.T) {
	t.Run("in time", func(t *testing.T) { onBoth(t, func(t *testing.T, n *node) { endUnderLoad(t, n, true) }) })
	t.Run("too late", func(t *testing.T) { onBoth(t, func(t *testing.T, n *node) { endUnderLoad(t, n, false) }) })
}

// recorded counts the calls of the host.
func (n *node) recorded() (count int) {
	for next := ""; ; {
		got := ask(n.url, n.token, "GET", "/api/v1/calls?page_size=100&page_token="+url.QueryEscape(next), "")
		var page struct {
			Items []struct{} `json:"calls"`
			Next  string     `json:"next_page_token"`
		}
		if got.status != http.StatusOK || json.Unmarshal([]byte(got.text), &page) != nil {
			return 0
		}
		count += len(page.Items)
		if next = page.Next; next == "" {
			return count
		}
	}
}

func endUnderLoad(t *testing.T, n *node, inTime bool) {
	const flight = 240
	if !inTime {
		n.end(syscall.SIGTERM)
		n.write("mortise.yaml", strings.Replace(config, "drain: 20s", "drain: 1s", 1))
		n.serve()
	}
	answers, before := make([]answer, flight), n.recorded()
	another := strings.TrimSpace(n.must("tokens", "create", "another", "--for", "ann", "--scope", "admin"))
	by := func(i int) string { return []string{n.token, another}[i%2] } // one token has at most 128 requests answered at a time
	operation := func(i int) string {
		if i%12 == 0 {
			return "line"
		}
		return "hold" // in the plugin, or waiting for one, while the host ends
	}
	var all sync.WaitGroup
	var over atomic.Int64
	for i := range answers {
		all.Go(func() {
			answers[i] = n.executeBy(by(i), operation(i), fmt.Sprint("n", i), "Idempotency-Key", fmt.Sprint("n", i))
			over.Add(1)
		})
	}
	testwait.Until(t, "all are on record, and some are held", func() bool { return len(n.left()) > 24 && n.recorded() >= before+flight })
	if under := flight - over.Load(); under < 200 {
		t.Errorf("only %d requests are under way", under)
	}
	ended := make(chan struct{})
	go func() { n.end(syscall.SIGTERM); close(ended) }()
	testwait.Until(t, "no other request is let in", func() bool { return ask(n.url, n.token, "GET", "/healthz", "").err != nil })
	release := func() {
		if err := os.WriteFile(filepath.Join(n.desk, "go"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	if inTime {
		release()
	}
	<-ended
	release()
	all.Wait()
	n.serve()
	ends := map[string]int{}
	for i, a := range answers {
		effect := n.left()[fmt.Sprint("n", i)] == 1
		again := n.executeBy(by(i), operation(i), fmt.Sprint("n", i), "Idempotency-Key", fmt.Sprint("n", i), "Prefer", "wait=60")
		if again.err != nil || again.status != http.StatusOK || again.member("status") != "succeeded" && again.member("status") != "unknown" {
			t.Errorf("%d again: %d %s %v", i, again.status, again.text, again.err)
			continue
		}
		replayed := again.header.Get("Idempotency-Replayed") == "true"
		switch {
		case a.err == nil && a.status == http.StatusOK:
			ends["answered"]++
			if a.text != again.text || !replayed {
				t.Errorf("%d was answered\n%s\nand later\n%s", i, a.text, again.text)
			}
		case a.err == nil && a.status == http.StatusAccepted:
			ends["accepted and found"]++
			if found := ask(n.url, n.token, "GET", a.header.Get("Location"), ""); found.status != http.StatusOK || !replayed {
				t.Errorf("%d was accepted, and under %s is %d %s", i, a.header.Get("Location"), found.status, found.text)
			}
		case a.err == nil && a.status == http.StatusServiceUnavailable:
			ends["refused"]++
			if a.header.Get("Retry-After") == "" || effect {
				t.Errorf("%d is refused, and had its effect %v: %v %s", i, effect, a.header, a.text)
			}
		case a.err != nil && !inTime:
			ends["cut off"]++
			if effect && !replayed {
				t.Errorf("%d was cut off after its effect, and the next host does not know it", i)
			}
		default:
			t.Errorf("%d is answered %d %s %v", i, a.status, a.text, a.err)
		}
	}
	t.Logf("of %d: %v", flight, ends)
	for line, times := range n.left() {
		if times != 1 {
			t.Errorf("%s happened %d times", line, times)
		}
	}
	n.must("ledger", "verify")
	n.end(syscall.SIGTERM)
}
