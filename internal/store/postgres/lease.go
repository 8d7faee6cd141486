package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// now is the database's clock, as times are kept. It goes on within a
// transaction.
const now = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// holdChain locks a node's chain, and its row in nodes against removal, if the
// node still holds them. Renewing the lease does not wait for this lock.
const holdChain = `SELECT c.seq, c.head, c.mac, c.authority, c.mark FROM chains c JOIN nodes n ON n.id = c.node
	WHERE c.id = ? AND c.node = ? AND c.epoch = ? AND n.lease_until > ` + now + `
	FOR NO KEY UPDATE OF c FOR KEY SHARE OF n`

// freeChain locks a chain that no live node holds: the one this node had, or
// the first.
const freeChain = `SELECT id, node, epoch, seq, head, mac, authority, mark FROM chains c
	WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = c.node AND n.id <> ? AND n.lease_until > ` + now + `)
	ORDER BY node <> ?, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`

const alive = `SELECT 1 FROM nodes WHERE id = ? AND id <> ? AND lease_until > ` + now

const newChain = `INSERT INTO chains (id, node, seq, head, mac) SELECT coalesce(max(id), 0) + 1, '', 0, '', '' FROM chains
	ON CONFLICT (id) DO NOTHING RETURNING id`

const takeChain = `UPDATE chains SET node = ?, epoch = ? WHERE id = ?`

const joinNodes = `INSERT INTO nodes (id, addr, epoch, started_at, lease_until) VALUES (?, ?, ?, ?, ` + now + ` + ?)
	ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, lease_until = excluded.lease_until`

// renewLease does not bring back a lease that is over.
const renewLease = `UPDATE nodes SET lease_until = ` + now + ` + $3 WHERE id = $1 AND epoch = $2 AND lease_until > ` + now + ` RETURNING ` + now

const endLease = `UPDATE nodes SET lease_until = ` + now + ` WHERE id = $1 AND epoch = $2`

// appendEntries is one statement, and so one round trip, for a whole batch.
const appendEntries = `WITH added AS (
		INSERT INTO entries (chain, seq, at, tenant, kind, subject, principal, body, prev, hash)
		SELECT * FROM unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])
	) UPDATE chains SET seq = ?, head = ?, mac = ?, authority = ? WHERE id = ?`

// orderAuthority takes a lock that lasts as long as the transaction. Its number is
// no other's here: the letters of "mortise".
const orderAuthority = `SELECT pg_advisory_xact_lock(30803309831484261)`

// mark is for transactions that append nothing.
const mark = `UPDATE chains SET mark = mark + 1 WHERE id = ?`

// A lease is this node's hold on the store: a row in nodes, which it renews, and
// a chain. The committer takes it and lets go of it; one goroutine, run, renews
// it in between.
type lease struct {
	db     *sql.DB
	node   store.NodeRow
	length time.Duration
	clock  *clock
	quit   chan struct{}
	ended  chan struct{}

	mu    sync.Mutex
	taken bool // there is something to renew
	chain int64
	epoch int64     // of the chain: it is raised by everyone who takes it
	until time.Time // on this machine's monotonic clock, with a margin before the database's
}

func newLease(db *sql.DB, node store.NodeRow, length time.Duration, clock *clock) *lease {
	return &lease{db: db, node: node, length: length, clock: clock, quit: make(chan struct{}), ended: make(chan struct{})}
}

// run renews the lease three times in its length, and more often while that
// fails.
func (l *lease) run() {
	defer close(l.ended)
	timer := time.NewTimer(l.length / 3)
	defer timer.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-timer.C:
		}
		if err := l.renew(); err != nil {
			timer.Reset(l.length / 15)
		} else {
			timer.Reset(l.length / 3)
		}
	}
}

func (l *lease) stop() {
	close(l.quit)
	<-l.ended
}

// renew renews the lease, and reads the database's clock with it.
func (l *lease) renew() error {
	l.mu.Lock()
	taken, epoch := l.taken, l.epoch
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), l.length/3)
	defer cancel()
	if !taken {
		return l.clock.read(ctx, l.db)
	}
	start := time.Now()
	var micros int64
	err := l.db.QueryRowContext(ctx, renewLease, l.node.ID, epoch, l.length.Microseconds()).Scan(&micros)
	// No row if it lapsed, which the next write finds out; or if it is not there
	// yet, because the transaction that takes it goes on.
	if errors.Is(err, sql.ErrNoRows) {
		return l.clock.read(ctx, l.db)
	}
	if err != nil {
		return err
	}
	l.clock.set(start, micros)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken && l.epoch == epoch {
		l.until = l.end(start)
	}
	return nil
}

// end returns until when a lease that was renewed at start surely holds.
func (l *lease) end(start time.Time) time.Time { return start.Add(l.length - l.length/5) }

func (l *lease) held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken && time.Now().After(l.until) {
		return store.ErrLapsed
	}
	return nil
}

// hold implements [sqlstore.Server].
func (l *lease) hold(tx sqlstore.Tx, how sqlstore.Holding) (sqlstore.Place, error) {
	if how != sqlstore.Stays {
		return l.take(tx, how == sqlstore.Joins)
	}
	if err := l.held(); err != nil {
		return sqlstore.Place{}, err
	}
	l.mu.Lock()
	p := sqlstore.Place{Head: store.ChainRow{ID: l.chain, Node: l.node.ID}}
	epoch := l.epoch
	l.mu.Unlock()
	found, err := tx.Row([]any{&p.Head.Seq, &p.Head.Head, &p.Head.MAC, &p.Head.Authority, &p.Mark}, holdChain, p.Head.ID, l.node.ID, epoch)
	if err == nil && !found {
		err = store.ErrLapsed
	}
	return p, err
}

// take takes a free chain, or makes one.
func (l *lease) take(tx sqlstore.Tx, join bool) (p sqlstore.Place, err error) {
	var epoch int64
	for {
		var holder string
		found, err := tx.Row([]any{&p.Head.ID, &holder, &epoch, &p.Head.Seq, &p.Head.Head, &p.Head.MAC, &p.Head.Authority, &p.Mark}, freeChain, l.node.ID, l.node.ID)
		if err != nil {
			return p, err
		}
		if !found {
			// All are held, or about to be. A transaction that creates the same chain is waited
			// for.
			if _, err := tx.Row([]any{&p.Head.ID}, newChain); err != nil {
				return p, err
			}
			continue
		}
		// Between the look at nodes and the lock another process may have come and committed:
		// the chain is seen as it is now, and nodes as they were.
		found, err = tx.Row([]any{new(int)}, alive, holder, l.node.ID)
		if err != nil {
			return p, err
		}
		if !found {
			break
		}
	}
	epoch++
	p.Head.Node = l.node.ID
	if _, err := tx.Exec(takeChain, l.node.ID, epoch, p.Head.ID); err != nil {
		return p, fmt.Errorf("taking chain %d: %w", p.Head.ID, err)
	}
	if !join {
		return p, nil
	}
	start := time.Now()
	if _, err := tx.Exec(joinNodes, l.node.ID, l.node.Addr, epoch, l.node.StartedAt.UnixMicro(), l.length.Microseconds()); err != nil {
		return p, fmt.Errorf("registering this process: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// If the transaction fails there is nothing that these would renew or hold.
	l.taken, l.chain, l.epoch, l.until = true, p.Head.ID, epoch, l.end(start)
	return p, nil
}

// leave implements [sqlstore.Engine]. Books that stay open are for others to
// close, and at once.
func (l *lease) leave(ctx context.Context, clean bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !clean {
		l.db.ExecContext(ctx, endLease, l.node.ID, l.epoch) // or it ends by itself
	}
	l.taken = false
}
