package shu

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// How much there is to take in, and how often it is cut off.
const (
	listed   = 500
	pageSize = 25
	kills    = 20
)

// lists is a source of lists of 500 items each, page by page. The cursor is how
// many items were given.
type lists struct {
	address string

	mu    sync.Mutex
	asked map[string][]int // cursors, by list
	alarm func(list string)
	after int // requests of any list, before the alarm
}

func newLists(t *testing.T) *lists {
	t.Helper()
	l := &lists{asked: map[string][]int{}}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	l.address = server.Listener.Addr().String()
	return l
}

func (l *lists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	list := r.URL.Query().Get("list")
	at, err := strconv.Atoi(r.URL.Query().Get("cursor"))
	if err != nil || at < 0 || at > listed {
		http.Error(w, "no such page", http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.asked[list] = append(l.asked[list], at)
	if l.after--; l.after == 0 && l.alarm != nil {
		go l.alarm(list)
	}
	l.mu.Unlock()
	page := struct {
		Items []map[string]string `json:"items"`
		Next  *string             `json:"next"`
	}{Items: []map[string]string{}}
	for n := at; n < min(at+pageSize, listed); n++ {
		page.Items = append(page.Items, map[string]string{"id": fmt.Sprintf("%s-%03d", list, n), "title": fmt.Sprintf("item %03d", n), "text": fmt.Sprintf("This is item number %d of %s.", n, list)})
	}
	if at < listed {
		next := strconv.Itoa(min(at+pageSize, listed))
		page.Next = &next
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page)
}

// when has something done a while after so many more requests.
func (l *lists) when(requests int, while time.Duration, do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after, l.alarm = requests, func(string) { <-time.After(while); do() }
}

func (l *lists) cursors(list string) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int{}, l.asked[list]...)
}

// A feed whose host is killed at twenty moments, in the first attempt of a run
// and in the second, goes on from its cursor: the same call ends well, and what
// was to be taken in is there, each item once.
func TestAKilledFeedLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	source := newLists(t)
	c := &connector{t, newHost(t), nil, "page_sync"}
	c.configure(t, fmt.Sprintf(`policy:
  allow:
    - {operations: ["*"], effects: ["*"]}
egress:
  loopback: [page_sync]
  map: {api.provider.example: %q}
`, source.address))
	c.must("plugins", "register", "--dev", "plugins/page-sync")
	wanted := kills
	if testing.Short() {
		wanted = 4
	}
	killed, resumed := 0, 0
	for run := 0; killed < wanted; run++ {
		if run > 2*kills {
			t.Fatalf("%d runs, and only %d were killed", run, killed)
		}
		base := fmt.Sprintf("base%d", run)
		c.must("kb", "create", base)
		var feed struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(c.must("feeds", "create", "page_sync", "--every", "1h", "--kb", base, "--json"), &feed); err != nil {
			t.Fatal(err)
		}
		command := []string{"feeds", "run", feed.ID, "--wait", "--json"}
		pages := listed/pageSize + 1
		for attempt := range 2 {
			begun := len(source.cursors(base))
			if !c.cutOff(source, 1+rand.IntN(pages), time.Duration(rand.Int64N(int64(60*time.Millisecond))), command...) {
				break
			}
			killed++
			asked := source.cursors(base)
			if attempt == 1 && len(asked) > begun {
				resumed++
				// It goes on with the page at the cursor: the last one that
				// was asked for, or the one after.
				if last, first := asked[begun-1], asked[begun]; first != last && first != last+pageSize {
					t.Errorf("%s: after the page at %d it went on with that at %d", base, last, first)
				}
			}
			pages = max(1, pages-len(asked))
			command = []string{"calls", "wait", c.callOf(feed.ID), "--json"}
		}
		if command[0] == "calls" {
			c.must(command...)
		}
		if got := c.show("calls", "show", c.callOf(feed.ID))["status"]; got != "succeeded" {
			t.Errorf("%s: the run is %v", base, got)
		}
		c.whole(base)
	}
	t.Logf("%d hosts were killed; %d second attempts came to ask for a page", killed, resumed)
	if out, errs, err := c.command(t, "ledger", "verify"); err != nil {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}

// cutOff runs a command and kills it, with all its processes, a while after the
// source was asked so many times. It reports whether the command was killed.
func (c *connector) cutOff(source *lists, requests int, while time.Duration, args ...string) bool {
	c.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "MORTISE_HOME="+c.home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var once sync.Mutex // no process is killed that is not this one
	over := false
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	source.when(requests, while, func() {
		once.Lock()
		defer once.Unlock()
		if !over {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	state, err := cmd.Process.Wait()
	once.Lock()
	over = true
	once.Unlock()
	if err != nil {
		c.Fatal(err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		return true
	}
	if !state.Success() {
		c.Error(errors.New("a run that was not killed: " + state.String()))
	}
	return false
}

// callOf returns the last call of a feed.
func (c *connector) callOf(feed string) string {
	c.Helper()
	last, _ := c.show("feeds", "show", feed)["last"].([]any)
	if len(last) == 0 {
		c.Fatal("the feed has no runs")
	}
	tick, _ := last[0].(map[string]any)
	id, _ := tick["call_id"].(string)
	return id
}

func (c *connector) show(args ...string) map[string]any {
	c.Helper()
	var got map[string]any
	if err := json.Unmarshal(c.must(append(args, "--json")...), &got); err != nil {
		c.Fatal(err)
	}
	return got
}

// whole fails unless a knowledge base has each item of its list once.
func (c *connector) whole(base string) {
	c.Helper()
	got := c.show("kb", "show", base, "--limit", "1000")
	documents, _ := got["documents"].([]any)
	seen := map[string]int{}
	for _, one := range documents {
		d, _ := one.(map[string]any)
		seen[fmt.Sprint(d["source_id"])]++
	}
	counts, _ := got["knowledge_base"].(map[string]any)
	if len(documents) != listed || counts["chunks"] != float64(listed) || counts["documents"] != float64(listed) {
		c.Errorf("%s: %d documents, and it counts %v of %v passages", base, len(documents), counts["documents"], counts["chunks"])
	}
	for n := range listed {
		if id := fmt.Sprintf("%s-%03d", base, n); seen[id] != 1 {
			c.Errorf("%s is there %d times", id, seen[id])
		}
	}
}

// The input of a feed has the form of the input of a run: __host goes to the host, op
// is set, and __schedule_id is the plugin's.
func TestAFeedsInputIsThatOfARun(t *testing.T) {
	t.Parallel()
	source := newLists(t)
	c := &connector{t, newHost(t), nil, "page_sync"}
	c.configure(t, fmt.Sprintf("policy:\n  allow:\n    - {operations: [\"*\"], effects: [\"*\"]}\negress:\n  loopback: [page_sync]\n  map: {api.provider.example: %q}\n", source.address))
	c.must("plugins", "register", "--dev", "plugins/page-sync")
	c.must("kb", "create", "base")
	create := []string{"feeds", "create", "page_sync", "--kb", "base", "--param", "__schedule_id=s9", "--param", "__host.exec.schedule_id=another", "--json"}
	var feed struct {
		ID    string         `json:"id"`
		Input map[string]any `json:"input"`
		Host  map[string]any `json:"host"`
	}
	if err := json.Unmarshal(c.must(append(create, "--param", "__host.ocr.mode=never")...), &feed); err != nil {
		t.Fatal(err)
	}
	if want := (map[string]any{"kb_id": "base", "op": "sync", "__schedule_id": "s9"}); !reflect.DeepEqual(feed.Input, want) {
		t.Errorf("the input is %v, not %v", feed.Input, want)
	}
	if want := (map[string]any{
		"ocr": map[string]any{"mode": "never"}, "kb": map[string]any{"knowledge_base_ids": []any{"base"}}, "exec": map[string]any{"schedule_id": "another"},
	}); !reflect.DeepEqual(feed.Host, want) {
		t.Errorf("the host has %v, not %v", feed.Host, want)
	}
	var got outcome
	if err := json.Unmarshal(c.must("feeds", "run", feed.ID, "--wait", "--json"), &got); err != nil {
		t.Fatal(err)
	}
	data, _ := got.Data.(map[string]any)
	if data["op"] != "sync" || data["schedule"] != "s9" || data["taken"] != float64(listed) {
		t.Errorf("the run says %v", got.Data)
	}
	// A flag counts for more than what is written, and what is no mode is refused.
	if err := json.Unmarshal(c.must(append(create, "--param", "__host.ocr.mode=never", "--ocr", "always")...), &feed); err != nil {
		t.Fatal(err)
	}
	if ocr, _ := feed.Host["ocr"].(map[string]any); ocr["mode"] != "always" {
		t.Errorf("the host has %v", feed.Host)
	}
	for _, wrong := range [][]string{{"--param", "__host.ocr.mode=sometimes"}, {"--param", "__host=yes"}, {"--param", "op=other"}} {
		if out, _, err := c.command(t, append(create[:6:6], wrong...)...); err == nil {
			t.Errorf("%q is taken: %s", wrong, out)
		}
	}
}
