// Package tail follows the ledger for any number of readers at once.
//
// While there are readers, one goroutine reads each new entry once, woken by the commits
// of this process, and by those of others where the store hears of them. Where it does not,
// and in case a signal is lost, it looks now and then. The entries that came
// last are in a ring that all readers share. A reader has no buffer of its own, only a
// [Position]: one that is slow, or that comes back, reads what it missed from the store.
// So a reader gets each entry once, and those of a chain in their order, also after a
// restart, and on another node of the same database.
package tail

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A Source is where the entries are.
type Source interface {
	ledger.Reader
	Watch(fn func()) (stop func(), all bool)
}

// Options say how the ledger is followed. Those that are 0 have the values in their comments.
type Options struct {
	Ring     int           // entries that are kept at hand at least, and twice as many at most: 2048
	LookBack int64         // entries that a reader that comes back may have missed: 10,000
	Poll     time.Duration // how often entries of other processes are looked for that the store does not tell of: 250 ms
	Log      *slog.Logger
}

// rarely is how often they are looked for where the store tells of them: a signal that is lost
// is made good then.
const rarely = 5 * time.Second

// pause is how long after one look the next is taken, so that many small commits make
// one; batch is how many entries are read at a time.
const (
	pause = 5 * time.Millisecond
	batch = 256
)

// An Entry is an entry of the ledger without its body.
type Entry struct {
	Chain, Seq int64
	At         time.Time
	Tenant     string
	Kind       plugin.EntryKind
	Subject    string
	Of         string // what the body names: the approval of approval.*, the agent of agent.assigned
	Hash       string
}

// A Tail follows one ledger. It is safe for concurrent use, and costs nothing while it
// has no readers.
type Tail struct {
	src  Source
	opts Options
	wake chan struct{}

	mu      sync.Mutex
	readers int
	end     func()        // ends the goroutine; nil where there is none
	ring    []Entry       // those that came last
	first   uint64        // the number of ring[0]
	start   Position      // before ring[0]
	head    Position      // after the last
	changed chan struct{} // closed when something is added
}

// New returns what follows the ledger in src.
func New(src Source, o Options) *Tail {
	o.Ring = cmp.Or(o.Ring, 2048)
	o.LookBack = cmp.Or(o.LookBack, 10_000)
	o.Poll = cmp.Or(o.Poll, 250*time.Millisecond)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Tail{src: src, opts: o, wake: make(chan struct{}, 1)}
}

// join counts a reader in, and begins to follow where it is the first.
func (t *Tail) join(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readers++; t.readers > 1 {
		return nil
	}
	head, err := t.heads(ctx)
	if err != nil {
		t.readers--
		return err
	}
	t.ring, t.first, t.start, t.head, t.changed = nil, 0, maps.Clone(head), head, make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	stop, all := t.src.Watch(func() {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	})
	select {
	case t.wake <- struct{}{}: // for what came before it was watched
	default:
	}
	ended := make(chan struct{})
	every := t.opts.Poll
	if all {
		every = max(every, rarely)
	}
	go func() { defer close(ended); t.run(ctx, every) }()
	t.end = func() { stop(); cancel(); <-ended }
	return nil
}

// leave counts a reader out. With the last one the following ends.
func (t *Tail) leave() {
	t.mu.Lock()
	end := func() {}
	if t.readers--; t.readers == 0 {
		end, t.end, t.ring = t.end, nil, nil
	}
	t.mu.Unlock()
	end()
}

// heads returns where the chains end in the store.
func (t *Tail) heads(ctx context.Context) (Position, error) {
	rows, err := t.src.Chains(ctx)
	if err != nil {
		return nil, err
	}
	p := Position{}
	for _, row := range rows {
		p[row.ID] = Place{row.Seq, row.Head}
	}
	return p, nil
}

// run reads what is added until ctx ends.
func (t *Tail) run(ctx context.Context, every time.Duration) {
	poll := time.NewTimer(every)
	defer poll.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-poll.C:
		}
		err := t.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case (err != nil) != failing:
			failing = err != nil
			t.opts.Log.Warn("following the ledger", "works", !failing, "cause", err)
		}
		if poll.Reset(every); err != nil {
			poll.Reset(t.opts.Poll)
		}
		if err == nil {
			wait(ctx, pause)
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// read adds to the ring what there is beyond it.
func (t *Tail) read(ctx context.Context) error {
	ends, err := t.heads(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	at := maps.Clone(t.head)
	t.mu.Unlock()
	for chain, end := range ends {
		for at[chain].Seq < end.Seq {
			entries, err := t.after(ctx, chain, at[chain].Seq, end.Seq)
			if err != nil {
				return err
			}
			if len(entries) == 0 { // a server that lags behind; the next look finds them
				break
			}
			last := entries[len(entries)-1]
			at[chain] = Place{last.Seq, last.Hash}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.add(chain, entries)
		}
	}
	return nil
}

// after returns the entries of a chain that follow one without a gap, up to another and at most a batch.
func (t *Tail) after(ctx context.Context, chain, seq, end int64) ([]Entry, error) {
	from := seq
	if from == 0 {
		from = -1 // from the first, and not the newest
	}
	rows, err := ledger.List(ctx, t.src, ledger.Filter{Chain: chain, After: from, Limit: int(min(batch, end-seq))})
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(rows))
	for i := range rows {
		if seq++; rows[i].Seq != seq {
			break
		}
		entries = append(entries, entryOf(&rows[i]))
	}
	return entries, nil
}

// add puts entries of a chain into the ring.
func (t *Tail) add(chain int64, entries []Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == nil || t.head[chain].Seq+1 != entries[0].Seq { // the last reader has left meanwhile
		return
	}
	t.ring = append(t.ring, entries...)
	last := entries[len(entries)-1]
	t.head[chain] = Place{last.Seq, last.Hash}
	if over := len(t.ring) - t.opts.Ring; over > t.opts.Ring { // now and then, not each time
		for _, e := range t.ring[:over] {
			t.start[e.Chain] = Place{e.Seq, e.Hash}
		}
		t.ring = append([]Entry(nil), t.ring[over:]...)
		t.first += uint64(over)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// entryOf returns an entry without its body, but for what the body names.
func entryOf(e *plugin.Entry) Entry {
	short := Entry{Chain: e.Chain, Seq: e.Seq, At: e.At, Tenant: e.Tenant, Kind: e.Kind, Subject: e.Subject, Hash: e.Hash}
	var named struct {
		Approval string `json:"approval"`
		Agent    string `json:"agent"`
	}
	switch {
	case strings.HasPrefix(string(e.Kind), "approval."):
		_ = json.Unmarshal(e.Body, &named) // what cannot be read is for verify to find
		short.Of = named.Approval
	case e.Kind == plugin.EntryAgentAssigned:
		_ = json.Unmarshal(e.Body, &named)
		short.Of = named.Agent
	}
	return short
}
