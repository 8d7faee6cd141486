package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func BenchmarkRecordBehind(b *testing.B) {
	l := openLedger(b, openStore(b, b.TempDir()), ledger.Options{})
	rec := record("019cb2c4-7d10-7a1e-8a5e-0123456789ab")
	rec.Effects, rec.Metrics = []string{"db_write"}, plugin.Metrics{"latency_ms": 1.5}
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Record(context.Background(), "t", plugin.EntryCallSucceeded, rec, at, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecordSparse is one Record at a time with room behind it: what a
// call waits for, without what the disk can take in the long run.
func BenchmarkRecordSparse(b *testing.B) {
	l := openLedger(b, openStore(b, b.TempDir()), ledger.Options{Flush: time.Hour, Buffer: 1 << 20})
	rec := record("019cb2c4-7d10-7a1e-8a5e-0123456789ab")
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%10000 == 9999 {
			b.StopTimer()
			l.Flush(context.Background())
			b.StartTimer()
		}
		if err := l.Record(context.Background(), "t", plugin.EntryCallSucceeded, rec, at, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClaimSettle(b *testing.B) {
	l := openLedger(b, openStore(b, b.TempDir()), ledger.Options{})
	b.SetParallelism(8) // times GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c := claim("", "mail_send")
			lease, _, err := l.Claim(context.Background(), c)
			if err == nil {
				res := &plugin.Result{Status: plugin.Succeeded, CallID: c.Call.ID, Data: []byte(`{"sent":true}`)}
				err = l.Settle(context.Background(), lease, ledger.Outcome{State: store.CallSucceeded, Result: res}, c.Record, at)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	dir := b.TempDir()
	const n = 50_000
	session(b, dir, n)
	for b.Loop() {
		if r := verify(b, dir); r.Fault != nil || r.Entries != n {
			b.Fatalf("%+v", r)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
