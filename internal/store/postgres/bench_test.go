package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/store/storetest"
	"github.com/mortise-dev/mortise/plugin"
)

// benchmarkWrite appends one entry of 200 bytes a write, from n callers shared
// evenly among some nodes.
func benchmarkWrite(b *testing.B, n, nodes int) {
	url, home := pgtest.Open(b), b.TempDir()
	var stores []*postgres.Store
	for range nodes {
		stores = append(stores, open(b, url, postgres.Options{Home: home}))
	}
	body := fmt.Appendf(nil, `{"pad":"%s"}`, bytes.Repeat([]byte("x"), 190))
	add := func(tx store.Tx) error {
		tx.Append(plugin.Entry{At: time.Now(), Tenant: "t", Kind: plugin.EntryCallSucceeded, Subject: "call", Principal: "p", Body: body})
		return nil
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range n {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := stores[i%nodes].Write(context.Background(), add); err != nil {
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

func BenchmarkWrite1(b *testing.B)     { benchmarkWrite(b, 1, 1) }
func BenchmarkWrite16(b *testing.B)    { benchmarkWrite(b, 16, 1) }
func BenchmarkWrite64(b *testing.B)    { benchmarkWrite(b, 64, 1) }
func BenchmarkTwoNodes64(b *testing.B) { benchmarkWrite(b, 64, 2) }

// BenchmarkCheckLive holds 10,000 calls that have not ended against the heads, as each
// host does when it starts.
func BenchmarkCheckLive(b *testing.B) {
	home := b.TempDir()
	st := open(b, pgtest.Open(b), postgres.Options{Home: home})
	storetest.LiveCalls(b, st, 10_000)
	key, err := store.ReadKey(home)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := st.Snapshot(b.Context(), func(r store.Reader) error { return store.CheckLive(b.Context(), r, key) }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRowSecurity has what row-level security costs: calls of 50 tenants are read by their
// ids, and entries of one tenant after another are written, as an ordinary role and as a
// superuser, over whom it does not stand.
func BenchmarkRowSecurity(b *testing.B) {
	for _, role := range []string{"with", "without"} {
		url := pgtest.Open(b)
		if role == "without" {
			url = pgtest.Super(url)
		}
		st := open(b, url, postgres.Options{Home: b.TempDir()})
		const tenants, each = 50, 200
		var parts []store.Store
		for n := range tenants {
			tenant := fmt.Sprintf("t%02d", n)
			parts = append(parts, st.For(tenant))
			if err := parts[n].Write(b.Context(), func(tx store.Tx) error {
				for i := range each {
					if err := tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: tenant, Owner: "p", Key: fmt.Sprint(i)}, Value: []byte("1"), UpdatedAt: time.Now()}); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
		}
		run := func(name string, do func(n int) error) {
			b.Run(name+"/"+role, func(b *testing.B) {
				var left atomic.Int64
				left.Store(int64(b.N))
				var wg sync.WaitGroup
				for range 16 {
					wg.Go(func() {
						for n := left.Add(-1); n >= 0; n = left.Add(-1) {
							if err := do(int(n)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
		run("read", func(n int) error {
			_, err := parts[n%tenants].KV(context.Background(), store.KVKey{Tenant: fmt.Sprintf("t%02d", n%tenants), Owner: "p", Key: fmt.Sprint(n % each)})
			return err
		})
		run("write", func(n int) error {
			return parts[n%tenants].Write(context.Background(), func(tx store.Tx) error {
				tx.Append(plugin.Entry{At: time.Now(), Tenant: fmt.Sprintf("t%02d", n%tenants), Kind: plugin.EntryCallSucceeded, Subject: "call", Principal: "p", Body: []byte("{}")})
				return nil
			})
		})
	}
}
