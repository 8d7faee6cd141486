package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// A load is writers that go on whatever happens, each with entries, rows and
// bodies of its own, and that remember what was acknowledged.
type load struct {
	stop  func()
	acked sync.Map       // subject of an entry, or id of a call
	n     []atomic.Int64 // writes acknowledged, of each writer
}

// longLease is a lease that does not end during a test, however slow the machine is.
const longLease = 10 * time.Minute

// startLoad starts n writers over the stores. No write may fail.
func startLoad(t *testing.T, n int, stores ...*postgres.Store) *load {
	l := &load{n: make([]atomic.Int64, n)}
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	for w := range n {
		st := stores[w%len(stores)]
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := l.write(st, fmt.Sprintf("%d/%d", w, i), i); err != nil {
					t.Errorf("write %d/%d: %v", w, i, err)
					return
				}
				l.n[w].Add(1)
			}
		})
	}
	l.stop = sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
	t.Cleanup(l.stop) // before the stores are closed
	return l
}

// advance waits until every writer has written n more times.
func (l *load) advance(t *testing.T, n int64) {
	t.Helper()
	for w := range l.n {
		want := l.n[w].Load() + n
		testwait.Until(t, fmt.Sprintf("writer %d goes on", w), func() bool {
			if t.Failed() {
				t.FailNow()
			}
			return l.n[w].Load() >= want
		})
	}
}

func (l *load) write(st *postgres.Store, subject string, i int) error {
	row := running(st.Node())
	row.Node = "" // of no node, so that closing does not wait for it
	err := st.Write(context.Background(), func(tx store.Tx) error {
		if i%3 == 0 { // a commit that appends nothing
			prior, err := tx.InsertCall(row)
			if prior != nil {
				return errors.New("a new key was seen before: the call was put twice")
			}
			return err
		}
		tx.Append(plugin.Entry{At: time.Now(), Kind: plugin.EntryCallSucceeded, Subject: subject, Body: []byte(`{}`)})
		_, err := tx.PutBody("t", []byte(subject), time.Time{})
		return err
	})
	if err != nil {
		return err
	}
	if i%3 == 0 {
		subject = row.ID
	}
	l.acked.Store(subject, i%3 == 0)
	return nil
}

// check ends the load and looks for every acknowledged write, once.
func (l *load) check(t *testing.T, st *postgres.Store, home string) {
	t.Helper()
	l.stop()
	found := make(map[string]int)
	for e, err := range st.Entries(t.Context(), store.EntryFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		found[e.Subject]++
	}
	calls, err := st.Calls(t.Context(), store.CallFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range calls {
		found[row.ID]++
	}
	for subject := range l.acked.Range {
		if n := found[subject.(string)]; n != 1 {
			t.Errorf("%s was acknowledged and is there %d times", subject, n)
		}
	}
	verified(t, st, home)
	n := int64(0)
	for w := range l.n {
		n += l.n[w].Load()
	}
	t.Logf("%d writes acknowledged", n)
}

func verified(t *testing.T, st store.Store, home string) ledger.Report {
	t.Helper()
	anchors, err := store.ReadAnchors(home)
	if err != nil {
		t.Fatal(err)
	}
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	report, err := ledger.Verify(t.Context(), st, key, anchors...)
	if err != nil {
		t.Fatal(err)
	}
	if report.Fault != nil {
		t.Errorf("the ledger does not hold: %+v", *report.Fault)
	}
	return report
}

const allBackends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

func TestKilledBackends(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	opts := postgres.Options{Home: home, Lease: longLease}
	st, other := open(t, url, opts), open(t, url, opts)
	l := startLoad(t, 16, st, other)
	for range 25 {
		l.advance(t, rand.N[int64](4)) // every writer: a batch gives up after many losses
		pgtest.Exec(t, url, allBackends)
		if _, err := st.Chains(t.Context()); err != nil {
			t.Errorf("reading: %v", err)
		}
	}
	l.check(t, st, home)
}

// Connections that are cut faster than a transaction takes lose nothing either.
func TestConnectionsCutWithoutPause(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	st := open(t, url, postgres.Options{Home: home, Lease: longLease})
	l := startLoad(t, 4, st)
	cuts := 0
	// The pauses between the tries of one batch take 3 seconds together, before the batch gives up.
	for start := time.Now(); time.Since(start) < 2*time.Second; cuts++ {
		pgtest.Exec(t, url, allBackends)
	}
	write(t, st)
	l.check(t, st, home)
	t.Logf("%d cuts", cuts)
}

func TestRestartedServer(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	url, home := server.Open(t), t.TempDir()
	opts := postgres.Options{Home: home, Lease: longLease}
	st, other := open(t, url, opts), open(t, url, opts)
	led, err := ledger.Open(t.Context(), other, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	record := func() {
		t.Helper()
		if err := led.Record(t.Context(), "t", plugin.EntryCallSucceeded, &plugin.CallRecord{CallID: "behind"}, time.Now(), false); err != nil {
			t.Error(err)
		}
	}
	l := startLoad(t, 16, st, other)
	for i, mode := range []string{"fast", "immediate", "immediate"} {
		l.advance(t, 1)
		server.Stop(t, mode)
		// A caller waits for as long as it likes, and no longer.
		testwait.Until(t, "a write without a server ends with its context, and says that the server is away", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := st.Write(ctx, note)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a write without a server ended with %v", err)
			}
			return store.IsOutage(err)
		})
		if _, err := st.Chains(t.Context()); !store.IsOutage(err) {
			t.Errorf("a read without a server ended with %v, want an outage", err)
		}
		record()
		server.Start(t)
		if _, err := st.Chains(t.Context()); err != nil {
			t.Errorf("reading after restart %d: %v", i, err)
		}
		record()
	}
	write(t, st)
	if err := led.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	l.check(t, st, home)
	if entries, err := ledger.List(t.Context(), st, ledger.Filter{Subject: "behind"}); err != nil || len(entries) != 6 {
		t.Errorf("%d of 6 records are there, %v", len(entries), err)
	}
	if err := led.Close(); err != nil {
		t.Error(err)
	}
}

func TestLapseWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	url, home := server.Open(t), t.TempDir()
	st := open(t, url, postgres.Options{Home: home, Lease: time.Second})
	led, err := ledger.Open(t.Context(), st, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, st)
	server.Stop(t, "fast")
	if err := led.Record(t.Context(), "t", plugin.EntryCallSucceeded, &plugin.CallRecord{CallID: "behind"}, time.Now(), false); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "Held reports that the lease is over", func() bool { return errors.Is(st.Held(), store.ErrLapsed) })
	server.Start(t)
	// What was recorded is written nevertheless, and the ledger goes on.
	if err := led.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := led.Close(); err != nil {
		t.Error(err)
	}
	if got := verified(t, st, home).Entries; got != 2 {
		t.Errorf("the ledger has %d entries, want 2", got)
	}
}

// A cutter stands between a node and the server, and cuts connections at a
// COMMIT: before the server gets it, or after it was sent and before the answer.
type cutter struct {
	listener net.Listener
	server   string
	cut      atomic.Bool
	cuts     atomic.Int64
	wg       sync.WaitGroup
	closed   atomic.Bool

	mu     sync.Mutex
	direct *pgx.Conn // to the server
}

func newCutter(t *testing.T, address string) (_ *cutter, through string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	dir, query := t.TempDir(), u.Query()
	c := &cutter{server: filepath.Join(query.Get("host"), ".s.PGSQL.5432")}
	if c.direct, err = pgx.Connect(t.Context(), pgtest.Super(address)); err != nil {
		t.Fatal(err)
	}
	if c.listener, err = net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432")); err != nil {
		t.Fatal(err)
	}
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	c.wg.Go(c.accept)
	t.Cleanup(func() {
		c.closed.Store(true)
		c.listener.Close()
		c.wg.Wait()
		c.direct.Close(context.Background())
	})
	return c, u.String()
}

// lookedFor returns when a node waits for the end of an open transaction, to learn what
// became of it: then a backend waits for a lock.
func (c *cutter) lookedFor() {
	for waiting := false; !waiting && !c.closed.Load(); {
		c.mu.Lock()
		err := c.direct.QueryRow(context.Background(), blockedBackends).Scan(&waiting)
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

const blockedBackends = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"

func (c *cutter) accept() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", c.server)
		if err != nil {
			client.Close()
			continue
		}
		c.wg.Go(func() { c.up(client, server) })
		c.wg.Go(func() {
			io.Copy(client, server)
			client.Close()
			server.Close()
		})
	}
}

// commitText is in what a node sends that keeps no statements prepared.
var commitText = []byte("COMMIT\x00")

// up copies what the node says.
func (c *cutter) up(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if at := bytes.Index(buf[:n], commitText); at >= 0 && c.cut.Load() && rand.N(3) == 0 {
			switch c.cuts.Add(1) % 4 {
			case 0: // lost on the way
				return
			case 1: // the answer is lost
				client.Close()
				server.Write(buf[:n])
				return
			case 2: // it arrives when the node is long looking for it
				client.Close()
				c.lookedFor()
				server.Write(buf[:n])
				return
			case 3: // only what comes before it arrives
				server.Write(buf[:at-len("P\x00\x00\x00\x0d\x00")])
				if rand.N(2) == 0 {
					client.Close()
					c.lookedFor()
				}
				return
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func TestLostAnswerToCommit(t *testing.T) {
	t.Parallel()
	direct, home := pgtest.Open(t), t.TempDir()
	c, through := newCutter(t, direct+"&default_query_exec_mode=exec")
	st := open(t, through, postgres.Options{Home: home, Lease: longLease})
	other := open(t, direct, postgres.Options{Home: home, Lease: longLease})
	write(t, st)
	c.cut.Store(true)
	l := startLoad(t, 4, st, st, st, other)
	testwait.Until(t, "100 connections were cut", func() bool { return c.cuts.Load() >= 100 || t.Failed() })
	c.cut.Store(false)
	l.check(t, other, home)
	t.Logf("%d cuts", c.cuts.Load())
}

// A watched context calls done when a caller is about to wait for its end.
type watched struct {
	context.Context
	done func()
}

func (w watched) Done() <-chan struct{} {
	w.done()
	return w.Context.Done()
}

func TestClosingWithoutAServer(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	st := open(t, server.Open(t), postgres.Options{Home: t.TempDir()})
	write(t, st)
	server.Stop(t, "immediate")
	const callers = 600 // more than there is room for
	waiting := make(chan error, callers)
	var asked atomic.Int64
	for range callers {
		ctx := watched{context.Background(), sync.OnceFunc(func() { asked.Add(1) })}
		go func() { waiting <- st.Write(ctx, note) }()
	}
	testwait.Until(t, "every caller waits", func() bool { return asked.Load() == callers })
	if err := st.Close(); err == nil {
		t.Error("nothing was said of the server")
	}
	for range callers {
		if err := testwait.Receive(t, "the end of a write", waiting); err == nil {
			t.Error("a write succeeded")
		}
	}
}
