package app_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/internal/surface/server"
	"github.com/mortise-dev/mortise/plugin"
)

// A balking store takes no writes while it is told so.
type balking struct {
	store.Store
	balks atomic.Bool
}

func (b *balking) Write(ctx context.Context, fn func(store.Tx) error) error {
	if b.balks.Load() {
		return fmt.Errorf("%w: 0 KiB are free\nand more are needed", store.ErrFull)
	}
	return b.Store.Write(ctx, fn)
}

// While the ledger of a host that serves is not written, its readiness says so, and
// any other process of its data directory sees it; afterwards both say the contrary.
func TestAHostWhoseLedgerIsNotWrittenSaysSo(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	host := open(t, home)
	st := &balking{Store: host.Store}
	l, err := ledger.Open(t.Context(), st, ledger.Options{Flush: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	own := host.Ledger
	host.Ledger = l
	t.Cleanup(func() { host.Ledger = own; _ = l.Close() })
	if pid, _ := setup.Serving(home); pid != 0 {
		t.Errorf("process %d is said to serve, and none does", pid)
	}
	release, err := setup.Exclusive(home)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- host.Work(ctx) }()
	handler, err := server.Handler(t.Context(), host, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ready := func() int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		return w.Code
	}
	is := func(what string, code int, trouble string) {
		t.Helper()
		testwait.Until(t, what, func() bool {
			pid, why := setup.Serving(home)
			return ready() == code && pid == os.Getpid() && why == trouble
		})
	}
	for range 2 {
		is("it writes", 200, "")
		st.balks.Store(true)
		rec := &plugin.CallRecord{CallID: "0192aaaa-0000-7000-8000-000000000001", Operation: "a/b", Status: plugin.Succeeded}
		if err := l.Record(t.Context(), "local", plugin.EntryCallSucceeded, rec, time.Now(), false); err != nil {
			t.Fatal(err)
		}
		is("it does not", 503, "the disk of the database is full: 0 KiB are free and more are needed")
		st.balks.Store(false)
	}
	is("it writes again", 200, "")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	release()
	if pid, _ := setup.Serving(home); pid != 0 {
		t.Errorf("process %d is said to serve, and it has ended", pid)
	}
}

// Whether the database takes writes is tried, and the try leaves nothing behind.
func TestADatabaseThatTakesNoWritesIsSaid(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := open(t, home)
	if err := a.Writable(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(home, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var left int
	if err := conn.QueryRowContext(t.Context(), "SELECT count(*) FROM kv WHERE owner = ':doctor'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := a.Writable(t.Context()); err == nil || !strings.Contains(err.Error(), "locked") || !strings.Contains(err.Error(), "end what keeps the database locked") {
		t.Errorf("while another process writes: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := a.Writable(t.Context()); err != nil {
		t.Error(err)
	}
}
