package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// The test binary runs itself as the process that dies; role says so.
const role = "MORTISE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "die":
		dieRunning(os.Args[1])
	case "recover":
		dieRecovering(os.Args[1], os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

var at = time.Date(2026, 2, 3, 4, 5, 6, 789012345, time.UTC)

func openStore(t testing.TB, dir string) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func openLedger(t testing.TB, st store.Store, opts ledger.Options) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(context.Background(), st, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// never is a Flush that does not happen by itself within a test.
const never = time.Hour

func record(id string) *plugin.CallRecord {
	return &plugin.CallRecord{CallID: id, Operation: "text.count/count", Principal: "user:ada", Status: plugin.Succeeded}
}

func subjects(entries []plugin.Entry) (got []string) {
	for _, e := range entries {
		got = append(got, e.Subject)
	}
	return got
}

func onDisk(t *testing.T, st store.Store) []string {
	t.Helper()
	entries, err := ledger.List(t.Context(), st, ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(entries)
	return subjects(entries)
}

func TestRecordIsBehindUntilItIsDue(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Flush: 20 * time.Millisecond})
	if err := l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record("a"), at, false); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the entry is written", func() bool { return len(onDisk(t, st)) > 0 })
	e, err := st.Entry(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !e.At.Equal(at.Truncate(time.Microsecond)) || e.Tenant != "t" || e.Principal != "user:ada" || !strings.Contains(string(e.Body), `"call_id":"a"`) {
		t.Errorf("the entry is %+v with body %s", e, e.Body)
	}
}

func TestDurableRecordBringsWhatIsBefore(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Flush: never})
	for _, id := range []string{"a", "b"} {
		if err := l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record(id), at, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := onDisk(t, st); len(got) != 0 {
		t.Errorf("on the disk already: %v", got)
	}
	for _, id := range []string{"c", "d"} {
		if err := l.Record(t.Context(), "t", plugin.EntryCallRefused, record(id), at, true); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := onDisk(t, st), []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("on the disk is %v, want %v", got, want)
	}
}

func TestDurableLedgerWaitsAlways(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Durable: true, Flush: never})
	if err := l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record("a"), at, false); err != nil {
		t.Fatal(err)
	}
	if got := onDisk(t, st); len(got) != 1 {
		t.Errorf("on the disk is %v", got)
	}
}

func TestCloseWritesTheRest(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Flush: never})
	if err := l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record("a"), at, false); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := onDisk(t, st); len(got) != 1 {
		t.Errorf("on the disk is %v", got)
	}
	if nodes, err := st.Nodes(t.Context()); err != nil || len(nodes) != 0 {
		t.Errorf("the nodes are %v, %v", nodes, err)
	}
	for _, durable := range []bool{false, true} {
		if err := l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record("b"), at, durable); !durable && !errors.Is(err, ledger.ErrClosed) || err == nil {
			t.Errorf("recording after close ended with %v", err)
		}
	}
}

// A slow store holds up every write until it may go on, or fails it.
type slow struct {
	store.Store
	gate   chan struct{}
	err    error
	writes atomic.Int64 // that were begun
}

func (s *slow) Write(ctx context.Context, fn func(store.Tx) error) error {
	s.writes.Add(1)
	<-s.gate
	if s.err != nil {
		return s.err
	}
	return s.Store.Write(ctx, fn)
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

func TestFullBufferBlocks(t *testing.T) {
	st := &slow{Store: openStore(t, t.TempDir()), gate: make(chan struct{})}
	l := openLedger(t, st, ledger.Options{Flush: never, Buffer: 4})
	add := func(ctx context.Context, id string) error {
		return l.Record(ctx, "t", plugin.EntryCallSucceeded, record(id), at, false)
	}
	const inWrite, inBuffer, waiting = 2, 4, 94
	for i := range inWrite { // half of the buffer is what a write begins with
		if err := add(t.Context(), fmt.Sprint("w", i)); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "a write is under way", func() bool { return st.writes.Load() > 0 })
	for i := range inBuffer {
		if err := add(t.Context(), fmt.Sprint("b", i)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, waiting)
	var blocked atomic.Int64
	for i := range waiting {
		ctx := watched{context.Background(), sync.OnceFunc(func() { blocked.Add(1) })}
		go func() { done <- add(ctx, fmt.Sprint(i)) }()
	}
	testwait.Until(t, "every other caller waits", func() bool { return blocked.Load() == waiting })
	if got := len(done); got != 0 {
		t.Errorf("%d entries were accepted by a buffer that is full", got)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Record(gone, "t", plugin.EntryCallSucceeded, record("x"), at, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled caller who waited for room got %v", err)
	}
	close(st.gate)
	for range waiting {
		if err := testwait.Receive(t, "the end of a call of Record", done); err != nil {
			t.Error(err)
		}
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := onDisk(t, st), inWrite+inBuffer+waiting; len(got) != want {
		t.Errorf("%d entries are on the disk, want %d", len(got), want)
	}
}

func TestFailedWriteIsNotForgotten(t *testing.T) {
	st := &slow{Store: openStore(t, t.TempDir()), gate: make(chan struct{}), err: fmt.Errorf("%w: the disk is gone", store.ErrFailed)}
	close(st.gate)
	l := openLedger(t, st, ledger.Options{Flush: never})
	if err := l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record("a"), at, false); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context()); !errors.Is(err, st.err) {
		t.Errorf("flushing ended with %v", err)
	}
	if err := l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record("b"), at, false); !errors.Is(err, st.err) {
		t.Errorf("the next record ended with %v", err)
	}
	if err := l.Close(); !errors.Is(err, st.err) {
		t.Errorf("closing ended with %v", err)
	}
}

func TestRecordKeepsEachCallersOrder(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Flush: time.Millisecond, Buffer: 32})
	const callers, each = 16, 50
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				rec := record(fmt.Sprintf("%02d/%03d", c, i))
				if err := l.Record(context.Background(), "t", plugin.EntryCallSucceeded, rec, at, i%10 == 9); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := onDisk(t, st)
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:2], b[:2]) })
	if len(got) != callers*each || !slices.IsSorted(got) {
		t.Errorf("%d entries, in order: %t", len(got), slices.IsSorted(got))
	}
}

func TestRecordTakesWhateverAPluginWrote(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{})
	rec := record("id\x00\xff")
	rec.Principal = "\xfe"
	rec.Error = &plugin.ErrorRecord{Code: plugin.CodePluginError, Message: "bad \xff\x00 bytes"}
	if err := l.Record(t.Context(), "t", plugin.EntryCallFailed, rec, at, true); err != nil {
		t.Error(err)
	}
}

func TestListAndShow(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Flush: never})
	for i, id := range []string{"a", "b", "a", "c"} {
		rec, kind := record(id), plugin.EntryCallSucceeded
		if i >= 2 {
			kind = plugin.EntryCallFailed
			rec.Error = &plugin.ErrorRecord{Code: [...]plugin.Code{plugin.CodeTimeout, plugin.CodeCrashed}[i-2]}
		}
		if id == "c" {
			rec.Operation = "other/op"
		}
		if err := l.Record(t.Context(), "t", kind, rec, at, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		filter ledger.Filter
		want   []string
	}{
		{"all", ledger.Filter{}, []string{"c", "a", "b", "a"}},
		{"last", ledger.Filter{Limit: 1}, []string{"c"}},
		{"after", ledger.Filter{After: 2}, []string{"a", "c"}},
		{"kind", ledger.Filter{Kind: "call.failed"}, []string{"c", "a"}},
		{"code", ledger.Filter{Code: plugin.CodeTimeout}, []string{"a"}},
		{"operation", ledger.Filter{Operation: "text.count/count", Limit: 2}, []string{"a", "b"}},
		{"tenant", ledger.Filter{Tenant: "u"}, nil},
	} {
		got, err := l.List(t.Context(), test.filter)
		if err != nil || !slices.Equal(subjects(got), test.want) {
			t.Errorf("%s: got %v, %v, want %v", test.name, subjects(got), err, test.want)
		}
	}
	if got, err := l.Show(t.Context(), "t", "a"); err != nil || len(got) != 2 || got[0].Seq != 1 || got[1].Seq != 3 {
		t.Errorf("showing a call: %v, %v", got, err)
	}
	if got, err := l.Show(t.Context(), "", "4"); err != nil || len(got) != 1 || got[0].Subject != "c" {
		t.Errorf("showing a place: %v, %v", got, err)
	}
	for _, id := range []string{"missing", "99", "1"} {
		if _, err := l.Show(t.Context(), "u", id); plugin.CodeOf(err) != plugin.CodeNotFound {
			t.Errorf("showing %s to another tenant: %v", id, err)
		}
	}
}
