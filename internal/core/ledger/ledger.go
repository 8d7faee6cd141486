// Package ledger keeps what was asked and how it ended.
//
// It is the only writer of entries about calls. A call without consequences
// leaves one entry, written behind ([Ledger.Record]); one that may have an
// effect is claimed before it runs and settled after ([Ledger.Claim],
// [Ledger.Settle]), each time as a row and an entry in one transaction, so that
// its key is burnt once, its answer is kept, and a crash between the two is seen
// and not repeated. What a dead process left running is settled by the next
// one that opens the ledger.
//
// [Verify] proves that the entries are unchanged since, [List] and [Show] read them.
// Package kernel decides the outcome of a call.
package ledger

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// Options say how a ledger is kept.
type Options struct {
	Durable bool          // every Record waits for the disk (ledger.tools: durable)
	Flush   time.Duration // how long an entry may be behind; 50 ms where it is 0
	Buffer  int           // how many entries may be behind before Record blocks; 1024 where it is 0
	Keep    time.Duration // how long stored answers are kept; for good where it is 0

	// Recover settles what else a dead node left, in the transaction that deletes the
	// node's row; nil does nothing.
	Recover func(ctx context.Context, tx Tx, node NodeRow, at time.Time) error
}

// What a ledger says of itself.
var (
	ErrClosed = errors.New("the ledger is closed")

	// ErrLeaseLost means that another process settled the call, because it took this owner
	// for dead. The caller must not return the answer, which was not stored.
	ErrLeaseLost = errors.New("the call is no longer this attempt's to settle")
)

// A Ledger writes entries and the rows of calls. One goroutine belongs to it,
// which writes behind; it has ended when Close returns. All methods are safe
// for concurrent use.
//
// The entries of Record keep their order. Claim and Settle do not wait for what
// is still behind, so entries of different calls may come in another order.
type Ledger struct {
	st     Store
	opts   Options
	behind *behind
}

// Now returns the time by the clock that all processes of the store share.
func (l *Ledger) Now() time.Time { return l.st.Now() }

// Open starts a ledger on st, after settling what dead processes left.
func Open(ctx context.Context, st Store, opts Options) (*Ledger, error) {
	if opts.Flush <= 0 {
		opts.Flush = 50 * time.Millisecond
	}
	if opts.Buffer <= 0 {
		opts.Buffer = 1024
	}
	l := &Ledger{st: st, opts: opts}
	if _, err := l.Recover(ctx); err != nil {
		return nil, err
	}
	l.behind = newBehind(st, opts)
	return l, nil
}

// Held returns nil while this process may act on what it claimed; see
// [errLapsed]. It is asked before each effect outside of the store.
func (l *Ledger) Held() error {
	if st, leased := l.st.(interface{ Held() error }); leased {
		return st.Held()
	}
	return nil
}

// Unwritten returns how many entries wait to be written.
func (l *Ledger) Unwritten() int {
	l.behind.mu.Lock()
	defer l.behind.mu.Unlock()
	return len(l.behind.entries)
}

// Writing returns nil while entries that are recorded behind reach the store, and
// why they do not: where that may pass, they are kept and tried again.
func (l *Ledger) Writing() error { return l.behind.held() }

// Record adds an entry about rec's call. If durable, or if the ledger is, it
// returns once the entry and all recorded before it are on the disk; otherwise
// at once, unless so many are behind that it must wait. Entries are never
// dropped: while one cannot be written every Record fails; Close fails where that lasts.
func (l *Ledger) Record(ctx context.Context, tenant string, kind plugin.EntryKind, rec *plugin.CallRecord, at time.Time, durable bool) error {
	e, err := entry(tenant, kind, rec, at)
	if err != nil {
		return err
	}
	if durable || l.opts.Durable {
		return l.behind.addDurable(ctx, e)
	}
	return l.behind.add(ctx, e)
}

// Flush returns once everything recorded is on the disk.
func (l *Ledger) Flush(ctx context.Context) error { return l.behind.flushed(ctx) }

// Close writes what is behind, in one transaction with taking this process off
// the books, and refuses what comes later. The store stays open. Calls after
// the first return nil.
func (l *Ledger) Close() error { return l.behind.close() }

// lapsing writes again what was refused because the process had lapsed. It is
// for what holds nevertheless: evidence of what has happened, and the end of a
// call, which is fenced by the call itself.
func lapsing(write func() error) error {
	for {
		if err := write(); !errors.Is(err, errLapsed) {
			return err
		}
	}
}

func entry(tenant string, kind plugin.EntryKind, rec *plugin.CallRecord, at time.Time) (plugin.Entry, error) {
	body, err := bodyOf(rec)
	return plugin.Entry{
		At: at.Truncate(time.Microsecond).UTC(), Tenant: clean(tenant), Kind: kind,
		Subject: clean(rec.CallID), Principal: clean(rec.Principal), Body: body,
	}, err
}

// clean returns text as every engine can keep it.
func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}
