package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/internal/store/storetest"
	"github.com/mortise-dev/mortise/plugin"
)

// callers runs n goroutines that share b.N operations.
func callers(b *testing.B, n int, op func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for range n {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := op(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// benchmarkWrite appends one entry of 200 bytes a write.
func benchmarkWrite(b *testing.B, n int) {
	st, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	body := fmt.Appendf(nil, `{"pad":"%s"}`, bytes.Repeat([]byte("x"), 190))
	callers(b, n, func() error {
		return st.Write(context.Background(), func(tx store.Tx) error {
			tx.Append(plugin.Entry{At: time.Now(), Tenant: "t", Kind: plugin.EntryCallSucceeded, Subject: "call", Principal: "p", Body: body})
			return nil
		})
	})
}

func BenchmarkWrite1(b *testing.B)  { benchmarkWrite(b, 1) }
func BenchmarkWrite16(b *testing.B) { benchmarkWrite(b, 16) }
func BenchmarkWrite64(b *testing.B) { benchmarkWrite(b, 64) }

// benchmarkFloor is what the disk allows: the same group commit of 200 bytes
// appended to a plain file and synced, with nothing else. Its groups wait for
// their callers as the committer's do.
func benchmarkFloor(b *testing.B, n int) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	record := bytes.Repeat([]byte("x"), 200)
	queue := make(chan chan error, 256)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var group []chan error
		var buf []byte
		for first := range queue {
			group, buf = append(group[:0], first), append(buf[:0], record...)
			for yields := 0; len(group) < n && yields < 8; yields++ {
				for len(queue) > 0 {
					group, buf = append(group, <-queue), append(buf, record...)
				}
				runtime.Gosched()
			}
			_, err := f.Write(buf)
			if err == nil {
				err = syscall.Fdatasync(int(f.Fd()))
			}
			for _, done := range group {
				done <- err
			}
		}
	}()
	callers(b, n, func() error {
		done := make(chan error, 1)
		queue <- done
		return <-done
	})
	close(queue)
	<-ended
}

func BenchmarkFloor1(b *testing.B)  { benchmarkFloor(b, 1) }
func BenchmarkFloor16(b *testing.B) { benchmarkFloor(b, 16) }
func BenchmarkFloor64(b *testing.B) { benchmarkFloor(b, 64) }

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	st, err := sqlite.Open(b.Context(), dir, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		st, err := sqlite.Open(b.Context(), dir, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		st.Close()
		b.StartTimer()
	}
}

// BenchmarkCheckLive holds 10,000 calls that have not ended against the heads, as each
// host does when it starts.
func BenchmarkCheckLive(b *testing.B) {
	dir := b.TempDir()
	st, err := sqlite.Open(b.Context(), dir, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	storetest.LiveCalls(b, st, 10_000)
	key, err := store.ReadKey(dir)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := st.Snapshot(b.Context(), func(r store.Reader) error { return store.CheckLive(b.Context(), r, key) }); err != nil {
			b.Fatal(err)
		}
	}
}
