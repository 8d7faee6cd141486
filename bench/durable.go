package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// durable is table D: entries that wait for the disk.
func durable(ctx context.Context, l *lab) (tables []table, err error) {
	for _, group := range []int{1, callers} {
		t := table{Title: fmt.Sprintf("D. Durable entries, %d callers", group), Unit: "entries/s"}
		if group == 1 {
			t.Title = "D. Durable entries, 1 caller"
		}
		var r rounds
		operator := target{}
		if group > 1 {
			operator = atLeastRatio(0.35)
		}
		n, turn := l.length()
		for i := range n {
			floor, err := l.syncFloor(ctx, group, turn)
			if err != nil {
				return tables, err
			}
			entries, err := l.ledgerEntries(ctx, group, turn, i)
			if err != nil {
				return tables, err
			}
			operators, err := l.claimedCalls(ctx, group, turn, i)
			if err != nil {
				return tables, err
			}
			r = append(r, []float64{floor, entries, operators})
		}
		for i, c := range []struct {
			name   string
			target target
		}{
			{"floor: append 200 B + fdatasync, grouped", target{}},
			{"ledger on SQLite", atLeastRatio(0.85)},
			{"calls of an operator, claimed and settled", operator},
		} {
			figure, ratio := r.median(i)
			t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.target))
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// syncFloor is the same group commit with nothing in it: 200 bytes a caller,
// appended to a plain file by one writer and synced.
func (l *lab) syncFloor(ctx context.Context, group int, turn time.Duration) (float64, error) {
	f, err := os.Create(filepath.Join(l.dir, "floor"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	record := bytes.Repeat([]byte("x"), 200)
	queue, ended := make(chan chan error, 2*callers), make(chan struct{})
	go func() {
		defer close(ended)
		var waiting []chan error
		var buf []byte
		for first := range queue {
			waiting, buf = append(waiting[:0], first), append(buf[:0], record...)
			for len(queue) > 0 {
				waiting, buf = append(waiting, <-queue), append(buf, record...)
			}
			_, err := f.Write(buf)
			if err == nil {
				err = syscall.Fdatasync(int(f.Fd()))
			}
			for _, done := range waiting {
				done <- err
			}
		}
	}()
	defer func() { close(queue); <-ended }()
	return throughput(ctx, group, turn, func(context.Context) error {
		done := make(chan error, 1)
		queue <- done
		return <-done
	})
}

// claimedCalls claims calls and settles them, each with a commit that others share.
func (l *lab) claimedCalls(ctx context.Context, group int, turn time.Duration, round int) (rate float64, err error) {
	dir := filepath.Join(l.dir, fmt.Sprintf("claims-%d-%d", group, round))
	defer os.RemoveAll(dir)
	st, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return 0, err
	}
	defer st.Close()
	book, err := ledger.Open(ctx, st, ledger.Options{})
	if err != nil {
		return 0, err
	}
	defer book.Close()
	var last atomic.Int64
	manifest := &plugin.Manifest{Name: "bench.send", Version: "1.0.0"}
	send := &plugin.Target{Manifest: manifest, Operation: &plugin.Operation{Name: "send", Kind: plugin.Operator, Effects: []string{"bench_send"}}, Package: plugin.Package{Digest: "sha256:bench"}}
	return throughput(ctx, group, turn, func(ctx context.Context) error {
		call := newCall([]byte(`{}`))
		call.ID = fmt.Sprintf("0199aa00-0000-7000-8000-%012d", last.Add(1))
		call.Key = call.ID
		record := &plugin.CallRecord{CallID: call.ID, Principal: call.Principal.ID, Operation: send.Name()}
		now := time.Now()
		lease, prior, err := book.Claim(ctx, ledger.Claim{
			Call: call, Target: send, Fingerprint: call.ID, InputHash: "sha256:bench", Request: []byte(`{}`), PolicyVersion: "bench",
			Deadline: now.Add(time.Minute), Record: record, At: now,
		})
		if prior != nil {
			return errors.New("a key was claimed before")
		}
		if err != nil {
			return err
		}
		res := &plugin.Result{Status: plugin.Succeeded, CallID: call.ID, Data: []byte(`{"sent":true}`)}
		return book.Settle(ctx, lease, ledger.Outcome{State: ledger.Succeeded, Result: res}, record, time.Now())
	})
}

// ledgerEntries records calls, each waiting for its entry to be on the disk.
func (l *lab) ledgerEntries(ctx context.Context, group int, turn time.Duration, round int) (rate float64, err error) {
	dir := filepath.Join(l.dir, fmt.Sprintf("ledger-%d-%d", group, round))
	defer os.RemoveAll(dir)
	st, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return 0, err
	}
	defer st.Close()
	book, err := ledger.Open(ctx, st, ledger.Options{})
	if err != nil {
		return 0, err
	}
	defer book.Close()
	var last atomic.Int64
	return throughput(ctx, group, turn, func(ctx context.Context) error {
		record := &plugin.CallRecord{
			CallID: fmt.Sprintf("0199aa00-0000-7000-8000-%012d", last.Add(1)), Principal: "local:owner", Operation: "bench.echo/echo",
		}
		return book.Record(ctx, "local", plugin.EntryCallSucceeded, record, time.Now(), true)
	})
}
