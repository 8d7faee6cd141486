package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// readersTime is how long the readers read: a minute in make test-long.
func readersTime(t *testing.T) time.Duration {
	if text := os.Getenv("MORTISE_READERS_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return 3 * time.Second
}

// A log is what one reader was told. It keeps a hash of that, as what is measured is what
// the host holds.
type log struct {
	said   hash.Hash64 // of the places of entries, in order
	n      int
	entry  string // the last
	id     string
	resets int
}

func (l *log) add(entry string) {
	_, _ = io.WriteString(l.said, entry+" ")
	l.entry = entry
	l.n++
}

// read reads a stream of server-sent events until it ends or enough says so.
func (l *log) read(body io.Reader, enough func() bool) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 4096), 1<<20)
	id, name, data := "", "", ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			data = value
		case field == "": // an event counts when it is whole
			switch name {
			case "reset":
				l.resets++
			case "call.succeeded":
				var e struct{ Entry string }
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					return err
				}
				l.add(e.Entry)
			}
			if id != "" {
				l.id = id
			}
			if id, name, data = "", "", ""; enough() {
				return nil
			}
		}
	}
	return nil // who is cut on a machine that is busy comes again, as a browser does
}

// 200 readers that stay, 200 that come and go, and 200 that stop reading, while calls are
// made: who reads is told of each call once and in order, who does not is cut, and what the host
// holds for all of them is bounded (F32).
func TestReadersOfEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long: it measures the memory of the host and the time that a reader may stall")
	}
	const each, writeTime = 200, time.Second
	b := begin(t, rest.Options{})
	server := httptest.NewUnstartedServer(rest.New(rest.Options{
		Rate: 1e6, Burst: 1e6,
		Host: b.app.Host, Authenticate: authenticate, PerToken: 3*each + 50, WriteTime: writeTime, Beat: 500 * time.Millisecond,
	}))
	server.Listener = narrow{server.Listener}
	var stalling sync.Map // the addresses of readers that stall and that the host has not cut
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			stalling.Delete(conn.RemoteAddr().String())
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	calls := b.url
	b.url = server.URL
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	open := func(ctx context.Context, after string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/api/v1/events?types=call.succeeded", nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer mrt_root")
		if after != "" {
			r.Header.Set("Last-Event-ID", after)
		}
		resp, err := client.Do(r)
		if err == nil && resp.StatusCode != 200 {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
		return resp, err
	}
	before := heap()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	logs := make([]log, 2*each)
	var all, ready sync.WaitGroup
	var over atomic.Bool
	var last atomic.Pointer[string] // the entry that all have to reach
	reached := func(l *log) bool {
		end := last.Load()
		return end != nil && l.entry == *end
	}
	for i := range logs {
		l := &logs[i]
		l.said = fnv.New64a()
		stays := i < each
		ready.Add(1)
		all.Go(func() {
			began := false
			for !reached(l) && ctx.Err() == nil {
				resp, err := open(ctx, l.id)
				if err != nil {
					t.Error(err)
					break
				}
				until := time.Now().Add(200*time.Millisecond + rand.N(2*time.Second))
				err = l.read(resp.Body, func() bool {
					if !began {
						began = true
						ready.Done()
					}
					return reached(l) || !stays && !over.Load() && time.Now().After(until)
				})
				_ = resp.Body.Close()
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					break
				}
			}
			if !began {
				ready.Done()
			}
		})
	}
	var cut atomic.Int64
	written := make(chan struct{})
	address := strings.TrimPrefix(b.url, "http://")
	ready.Add(each)
	for range each {
		all.Go(func() { stall(ctx, t, address, &stalling, ready.Done, written, &cut) })
	}
	ready.Wait()
	b.url = calls // not through narrow connections
	made, most := 0, uint64(0)
	for end := time.Now().Add(readersTime(t)); made < 30 || time.Now().Before(end); made++ {
		err := b.app.Store.Write(t.Context(), func(tx store.Tx) error { // and what many calls at once leave
			for n := range 20 {
				tx.Append(plugin.Entry{At: time.Now(), Tenant: "local", Kind: plugin.EntryCallSucceeded, Subject: fmt.Sprint(made, "-", n), Body: []byte("{}")})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		b.is(b.execute("mrt_ann", "upper", fmt.Sprint(made), "Idempotency-Key", fmt.Sprint(made)), 200, "succeeded")
		if made%20 == 0 {
			most = max(most, heap())
		}
	}
	entries := b.ask("mrt_root", "GET", "/api/v1/ledger/entries?kind=call.succeeded&page_size=200", "")
	var want []string
	for page := entries; ; {
		list, _ := page.at("entries").([]any)
		for _, e := range list {
			entry := e.(map[string]any)
			want = append(want, fmt.Sprint(entry["chain"], "/", entry["seq"]))
		}
		next := fmt.Sprint(page.at("next_page_token"))
		if next == "" {
			break
		}
		page = b.ask("mrt_root", "GET", "/api/v1/ledger/entries?kind=call.succeeded&page_size=200&page_token="+next, "")
	}
	over.Store(true)
	last.Store(&want[len(want)-1])
	b.is(b.execute("mrt_ann", "fail", "so that those who read hear that it is over", "Idempotency-Key", "over"), 200, "failed")
	timer := time.AfterFunc(testwait.Limit, cancel)
	testwait.Until(t, "the host has cut the readers that stall", func() bool {
		none := true
		stalling.Range(func(any, any) bool { none = false; return false })
		return none
	})
	close(written)
	all.Wait()
	timer.Stop()
	whole := log{said: fnv.New64a()}
	for _, entry := range want {
		whole.add(entry)
	}
	wrong := 0
	for i := range logs {
		if l := &logs[i]; l.n != whole.n || l.said.Sum64() != whole.said.Sum64() || l.resets > 0 {
			if wrong++; wrong < 4 {
				t.Errorf("reader %d was told of %d entries, with %d resets, and %d were written", i, l.n, l.resets, whole.n)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d readers were not told of each entry once and in order", wrong, len(logs))
	}
	if n := cut.Load(); n != each {
		t.Errorf("%d of %d readers that stall were cut", n, each)
	}
	grown := int64(most) - int64(before)
	t.Logf("%d calls and %d entries; the heap grew by %d MiB at most", made, len(want), grown>>20)
	if grown > 128<<20 { // most of it is connections and their clients, which are in this process too
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

// stall opens a stream and reads nothing until all is written. It counts itself where the
// stream has ended by then.
func stall(ctx context.Context, t *testing.T, address string, stalling *sync.Map, began func(), written <-chan struct{}, cut *atomic.Int64) {
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2<<10) })
	}}
	conn, err := small.DialContext(ctx, "tcp", address)
	if err != nil {
		t.Error(err)
		began()
		return
	}
	defer conn.Close()
	stalling.Store(conn.LocalAddr().String(), true)
	fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer mrt_root\r\n\r\n")
	began()
	<-written
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // a stream that goes on has no end
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
		cut.Add(1)
	}
}

// A narrow listener has connections that hold little on their way.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		_ = conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
