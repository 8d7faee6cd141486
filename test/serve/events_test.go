package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// A reader follows the events of calls on a node, again from the last one that it has heard
// of whenever its stream breaks.
type reader struct {
	mu    sync.Mutex
	calls []string       // of which it heard that they succeeded, in that order
	ids   map[string]int // how often it heard of each event
	last  string
	opens int // streams that began
}

// follow reads until ctx ends.
func (r *reader) follow(ctx context.Context, n *node) {
	for ctx.Err() == nil {
		r.read(ctx, n.url, n.token)
		select { // the node may be about to start again
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *reader) read(ctx context.Context, url, token string) {
	q, err := http.NewRequestWithContext(ctx, "GET", url+"/api/v1/events?types=call.succeeded", nil)
	if err != nil {
		return
	}
	q.Header.Set("Authorization", "Bearer "+token)
	if r.last != "" {
		q.Header.Set("Last-Event-ID", r.last)
	}
	resp, err := client.Do(q)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return
	}
	r.mu.Lock()
	r.opens++
	r.mu.Unlock()
	in := bufio.NewScanner(resp.Body)
	id := ""
	for in.Scan() {
		if text, is := strings.CutPrefix(in.Text(), "id: "); is {
			id, r.last = text, text
		}
		if text, is := strings.CutPrefix(in.Text(), "data: "); is {
			var e struct{ ID, Type string }
			if json.Unmarshal([]byte(text), &e) != nil {
				continue
			}
			r.mu.Lock()
			r.ids[id]++
			r.calls = append(r.calls, e.ID)
			r.mu.Unlock()
		}
	}
}

func (r *reader) heard() (calls []string, opens int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.calls...), r.opens
}

// Two nodes share one PostgreSQL. Who follows the events of one hears of the calls that are
// made on the other: each once, in the order in which they ended, and also of those that
// ended while the node that they follow was away.
func TestNodesOnOneDatabaseShareTheirEvents(t *testing.T) {
	database := pgtest.Open(t)
	a := begin(t, database)
	b := prepare(t, database)
	b.token = a.token
	key, err := os.ReadFile(filepath.Join(a.home, "ledger.key")) // nodes of one database share it
	if err != nil {
		t.Fatal(err)
	}
	b.write("ledger.key", string(key))
	b.serve()
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{ids: map[string]int{}}
	var reading sync.WaitGroup
	reading.Go(func() { r.follow(ctx, b) })
	defer reading.Wait()
	defer stop()
	testwait.Until(t, "it follows", func() bool { _, opens := r.heard(); return opens == 1 })
	var made []string
	call := func(n int) {
		t.Helper()
		for range n {
			got := a.execute("line", fmt.Sprint("e", len(made)), "Idempotency-Key", fmt.Sprint("e", len(made)))
			if got.status != http.StatusOK || got.member("status") != "succeeded" {
				t.Fatalf("%d %s %v", got.status, got.text, got.err)
			}
			made = append(made, got.member("call_id"))
		}
	}
	hears := func() {
		t.Helper()
		testwait.Until(t, "all were heard of", func() bool { calls, _ := r.heard(); return len(calls) >= len(made) })
		if calls, _ := r.heard(); fmt.Sprint(calls) != fmt.Sprint(made) {
			t.Errorf("heard of\n%v\nand made were\n%v", calls, made)
		}
	}
	call(20)
	hears()
	b.end(syscall.SIGTERM)
	call(20) // while it is away
	b.serve()
	call(20)
	hears()
	b.end(syscall.SIGKILL)
	call(5)
	b.serve()
	hears()
	for id, times := range r.ids {
		if times != 1 {
			t.Errorf("the event %s came %d times", id, times)
		}
	}
	stop()
	reading.Wait()
	a.end(syscall.SIGTERM)
	b.end(syscall.SIGTERM)
}
