// Package sqlite opens a store in one SQLite file, for one machine.
//
// Any number of processes may have it open; each that writes is a node, known
// to be alive by a file lock that it holds. A data directory holds:
//
//	mortise.db      the database, with its -wal and -shm beside it
//	ledger.key      authenticates the head of the chain (package chain)
//	ledger.anchor   the head at the last clean close
//	nodes/          a lock for each live node
//	migrate.lock    held while the schema is brought up to date
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/google/uuid"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// File is the name of the database in its directory.
const File = "mortise.db"

// onlyChain is the only one: every commit, of whatever process, goes through the
// file's one write lock.
const onlyChain = 1

// Options say how to open.
type Options struct {
	ReadOnly bool // creates, migrates, recovers and writes nothing

	// Reserve is given up when the disk is full, for writes that record what has
	// happened. It may be nil.
	Reserve *store.Reserve
}

// A Store is a [store.Store] in one file.
type Store struct {
	*sqlstore.Store
	dir  string
	lock *filelock.Lock // of this node; of the committer while it runs
	key  *store.Key
}

var _ store.Store = (*Store)(nil)

// Open opens the database in dir. Directory and database are created where
// they are missing, readable by their owner only, and brought to the newest
// schema. A database of a newer one is refused with [*store.NewerError].
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, File)
	if !opts.ReadOnly {
		if err := only(path); err != nil {
			return nil, err
		}
	}
	read, err := sql.Open("sqlite", dsn(dir, "_pragma=query_only(1)"))
	if err != nil {
		return nil, err
	}
	readers := fault.Pool(max(4, runtime.NumCPU()))
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)

	s := &Store{dir: dir}
	e := sqlstore.Engine{Read: read, Own: own(), Untyped: true, Newest: "chain DESC, seq DESC", Chain: onlyChain, Text: textIndex, Away: away}
	if !opts.ReadOnly {
		e.Write, err = sql.Open("sqlite", dsn(dir, "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(1)"))
		if err != nil {
			return nil, errors.Join(err, read.Close())
		}
		e.Write.SetMaxOpenConns(1)
		id, err := uuid.NewV7()
		if err != nil {
			return nil, errors.Join(err, read.Close(), e.Write.Close())
		}
		e.Begin, e.Pinned, e.Fatal, e.Full, e.Key = "BEGIN IMMEDIATE", durable, fatal, full, s.signer
		if opts.Reserve != nil {
			e.Room = opts.Reserve.Release
		}
		e.Node = store.NodeRow{ID: id.String(), StartedAt: time.Now()}
		e.Enter = func() (err error) { s.lock, err = filelock.Acquire(s.lockPath(id.String())); return err }
		e.Leave = func(_ context.Context, clean bool) {
			if clean {
				s.lock.Remove()
			} else {
				s.lock.Release()
			}
		}
	}
	err = s.prepare(ctx, e)
	if err == nil && !opts.ReadOnly {
		e.Same, err = sameFile(path)
	}
	if err != nil {
		err = errors.Join(err, read.Close())
		if e.Write != nil {
			err = errors.Join(err, e.Write.Close())
		}
		return nil, err
	}
	e.Others = func(fn func()) (stop func(), all bool) { return watchFile(path+"-wal", fn) }
	s.Store = sqlstore.New(e)
	return s, nil
}

// sameFile returns a function that says whether the file of that name is still the
// one that it is now.
func sameFile(path string) (func() error, error) {
	opened, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return func() error {
		now, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%s was opened, and is gone: %w", path, err)
		}
		if !os.SameFile(opened, now) {
			return fmt.Errorf("%s is another file than the one that was opened: it was replaced while this host ran", path)
		}
		return nil
	}, nil
}

// MoveAnchors moves the anchor to where the chain ends, where this process added
// to it.
func (s *Store) MoveAnchors(ctx context.Context) error {
	if !s.Appended() {
		return nil
	}
	key, err := store.ReadKey(s.dir)
	if err != nil {
		return err
	}
	return store.MoveAnchors(ctx, s, s.dir, key)
}

// dsn names the database as the driver wants it.
func dsn(dir, parameters string) string {
	path := (&url.URL{Path: filepath.Join(dir, File)}).EscapedPath()
	return "file:" + path + "?_pragma=busy_timeout(10000)&" + parameters
}

// durable refuses a connection whose commits would not be. SQLite does not
// object when a file system cannot do what was asked of it.
func durable(ctx context.Context, c *sql.Conn) error {
	var mode string
	var synchronous int
	if err := c.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err := c.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
		return err
	}
	if mode != "wal" || synchronous != 2 {
		return fmt.Errorf("the database has journal_mode=%s and synchronous=%d where wal and 2 are needed: is it on a network file system?", mode, synchronous)
	}
	return nil
}

// fatal reports whether err says that the file, or the disk beneath it, failed.
func fatal(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// full reports whether err says that the disk had no room for the write-ahead
// log. Such a transaction is rolled back and leaves nothing behind.
func full(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC)
}

// away reports whether err says that the database could not be used: another process holds it,
// or the file, its disk or the machine failed.
func away(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return errors.Is(err, syscall.EIO)
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, // held by another
		sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FULL, // the disk
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM: // the file, the machine
		return true
	}
	return false
}

// prepare makes the database and its key fit for use.
func (s *Store) prepare(ctx context.Context, e sqlstore.Engine) error {
	if err := s.migrate(ctx, e); err != nil {
		return malformed(filepath.Join(s.dir, File), err)
	}
	if e.Write == nil {
		return nil
	}
	if err := sound(ctx, e.Read, filepath.Join(s.dir, File)); err != nil {
		return err
	}
	if err := makeDir(filepath.Join(s.dir, "nodes")); err != nil {
		return err
	}
	key, err := store.ReadKey(s.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		s.key = key
		return err
	}
	var heads int
	if err := e.Read.QueryRowContext(ctx, "SELECT count(*) FROM chains").Scan(&heads); err != nil || heads == 0 {
		return err
	}
	// Another process may have made the key and the first entry just now; the
	// key was there before the entry.
	if s.key, err = store.ReadKey(s.dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing and the ledger was signed with it: restore it from a backup",
			filepath.Join(s.dir, store.KeyFile))
	}
	return err
}

// signer returns the key, and makes one for the first entry there ever is. So
// a key without any entry is a sign that there were some.
func (s *Store) signer(sqlstore.Tx) (_ *store.Key, err error) {
	if s.key == nil {
		s.key, err = chain.CreateKey(s.dir)
	}
	return s.key, err
}

// Close implements [store.Store], and moves the anchor to where the chain ends.
func (s *Store) Close() error {
	err := s.Drain()
	if err == nil && s.Appended() {
		store.MoveAnchors(context.Background(), s, s.dir, s.key) // best effort
	}
	return errors.Join(err, s.Store.Close())
}

// makeDir creates a directory and makes its name durable; it leaves one alone
// that is there.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return store.SyncDir(filepath.Dir(dir))
}
