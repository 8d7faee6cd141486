// Package postgres opens a store in a PostgreSQL database, for any number of
// nodes.
//
// Each process that writes is a node. It is known to be alive by a lease that
// it renews, by the database's clock, and it appends to a chain of its own,
// which it takes with its first write and another may have after it. A process
// that slept past its lease may have been taken for dead, so that its next write
// is refused with [store.ErrLapsed]; the one after that joins again.
//
// What is not in the database is in a directory of each node:
//
//	ledger.key        authenticates the heads of the chains (package store)
//	ledger*.anchor    the heads at the last clean close, a file for each chain
//
// All nodes must have the same key: the first to write makes it, and ledger.key
// is copied from there to the others before they write. A node with another key
// is refused, and one without.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	points "github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// Options say how to open.
type Options struct {
	Home     string        // where the key and the anchors are
	ReadOnly bool          // touch nothing, be no node; the key in Home is not looked at
	Addr     string        // where other nodes reach this one; "" where they do not
	Lease    time.Duration // how long a silent node passes for alive; 15 s where it is 0
}

const (
	defaultLease = 15 * time.Second
	dialTimeout  = 5 * time.Second  // for a server that does not answer, unless the URL says otherwise
	patience     = 15 * time.Second // for one transaction
	grace        = 10 * time.Second // for a server that is away when the store is closed
)

// A Store is a [store.Store] in PostgreSQL. Beside the committer's, one
// goroutine belongs to it, which renews the lease; both have ended when Close
// returns.
type Store struct {
	*sqlstore.Store
	home  string
	read  *sql.DB
	write *sql.DB // nil for a store that only reads
	key   *store.Key
	lease *lease // nil likewise
	clock *clock

	once sync.Once // for Close
}

var _ store.Store = (*Store)(nil)

// Open opens the database that url names, as libpq understands it, and brings
// it to the newest schema. A database of a newer one is refused with
// [*store.NewerError]; so is a server on which a commit would not be durable.
func Open(ctx context.Context, url string, opts Options) (*Store, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = dialTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "mortise"
	}
	if opts.Lease == 0 {
		opts.Lease = defaultLease
	}

	s := &Store{home: opts.Home, read: sql.OpenDB(connector{stdlib.GetConnector(*config)}), clock: new(clock)}
	readers := points.Pool(max(4, runtime.NumCPU()))
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	e := sqlstore.Engine{
		Read: s.read, Rebind: rebind, Keep: " FOR UPDATE", Caches: true, Isolation: sql.LevelRepeatableRead, Newest: "at DESC, chain DESC, seq DESC", Text: textIndex, Own: &sqlstore.Ownership{Triggers: triggers}, Away: away, Now: s.clock.now,
	}
	if !opts.ReadOnly {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, errors.Join(err, s.read.Close())
		}
		// The committer's, the lease's, and one to ask what became of a commit.
		s.write = sql.OpenDB(connector{stdlib.GetConnector(*config)})
		s.write.SetMaxOpenConns(3)
		e.Node = store.NodeRow{ID: id.String(), Addr: opts.Addr, StartedAt: time.Now()}
		s.lease = newLease(s.write, e.Node, opts.Lease, s.clock)
		e.Write, e.Key = s.write, s.signer
		e.Full = full
		e.Pinned = func(ctx context.Context, c *sql.Conn) error { return fit(ctx, c, opts.Lease) }
		e.Leave = s.lease.leave
		e.Server = &sqlstore.Server{
			Patience: patience, Grace: grace, Fault: fault,
			Begin: begin, Hold: s.lease.hold, Append: appendEntries, Order: orderAuthority, Mark: mark, Commit: commit, Settled: s.settled,
		}
	}
	err = s.prepare(ctx, config)
	if err == nil {
		err = s.clock.read(ctx, s.read)
	}
	if err != nil {
		err = errors.Join(err, s.read.Close())
		if s.write != nil {
			err = errors.Join(err, s.write.Close())
		}
		return nil, err
	}
	if s.lease != nil {
		go s.lease.run()
	}
	s.Store = sqlstore.New(e)
	return s, nil
}

// prepare makes the database and the directory fit for use.
func (s *Store) prepare(ctx context.Context, config *pgx.ConnConfig) (err error) {
	name := fmt.Sprintf("database %s on %s", config.Database, config.Host)
	if s.write == nil {
		return migrated(ctx, s.read, name)
	}
	if s.home == "" {
		return errors.New("a store that writes needs a directory for its ledger.key")
	}
	if s.home, err = filepath.Abs(s.home); err != nil {
		return err
	}
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		return err
	}
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	defer conn.Close()
	if err := fit(ctx, conn, s.lease.length); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := migrate(ctx, s.write, name); err != nil {
		return err
	}
	return s.known(ctx)
}

// MoveAnchors moves the anchors to where the chains end, where this process added
// to one.
func (s *Store) MoveAnchors(ctx context.Context) error {
	if !s.Appended() {
		return nil
	}
	key, err := store.ReadKey(s.home)
	if err != nil {
		return err
	}
	return store.MoveAnchors(ctx, s, s.home, key)
}

// triggers are what runs by itself when a row of this schema is written.
const triggers = `(SELECT t.tgname AS name FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
	WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace
	UNION ALL SELECT rulename FROM pg_rules WHERE schemaname = current_schema()) triggers`

// Held returns nil while this process may act on what it claimed, and
// [store.ErrLapsed] from some seconds before others may take it for dead. Ask
// it before an effect that cannot be taken back.
func (s *Store) Held() error {
	if s.lease == nil {
		return store.ErrReadOnly
	}
	return s.lease.held()
}

// For implements [store.Divisible].
func (s *Store) For(tenant string) store.Store { return division{s.Store.For(tenant), s} }

// A division is a store as one tenant sees it, with the lease of the node.
type division struct {
	store.Store
	of *Store
}

// Held is [Store.Held].
func (d division) Held() error { return d.of.Held() }

// Close implements [store.Store], and moves the anchors to where the chains end.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		err = s.Drain()
		if err == nil && s.Appended() {
			ctx, cancel := context.WithTimeout(context.Background(), grace)
			defer cancel()
			store.MoveAnchors(ctx, s, s.home, s.key) // best effort
		}
		if s.lease != nil {
			s.lease.stop()
		}
		err = errors.Join(err, s.Store.Close())
	})
	return err
}

// rebind numbers the parameters of a statement. None of ours has a question
// mark of its own.
func rebind(query string) string {
	var b strings.Builder
	n := 0
	for i := range len(query) {
		if query[i] != '?' {
			b.WriteByte(query[i])
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
