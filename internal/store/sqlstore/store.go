// Package sqlstore fulfils the store contract over database/sql for the engines
// that open one.
//
// An engine gives it two handles, the few things in which dialects differ and
// what it knows of keys and nodes ([Engine]); the statements, the committer and
// the linking of the chain are the same for all. Statements are written once,
// with question marks; an engine that numbers its parameters rebinds them.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/mortise-dev/mortise/internal/store"
)

// An Engine is a database as its package opened it. The two handles belong to
// the Store made from it.
type Engine struct {
	Write *sql.DB // nil for a store that only reads
	Read  *sql.DB

	Begin  string                                       // starts a transaction that will write
	Rebind func(query string) string                    // from question marks; nil keeps them
	Pinned func(ctx context.Context, c *sql.Conn) error // checks the writing connection before its first use; nil checks nothing
	Fatal  func(err error) bool                         // a failed statement after which the disk cannot be trusted

	Chain int64                      // the one this process appends to
	Key   func() (*store.Key, error) // called for the first entry, and only by the committer

	Node  store.NodeRow    // this process
	Enter func() error     // before the transaction that puts the node on the books
	Leave func(clean bool) // after the one that took it off, or, not clean, when it ends with its books open
}

// A Store is a [store.Store] but for the recovery of dead nodes, which the
// engine adds. One goroutine belongs to it, the committer's; it has ended when
// Close returns.
type Store struct {
	reader
	engine *Engine
	read   *stmts

	committer *committer // nil for a store that only reads

	once sync.Once // for Close
}

// New returns a Store over e, and starts it.
func New(e Engine) *Store {
	s := &Store{engine: &e, read: &stmts{rebind: e.Rebind, prepare: e.Read.PrepareContext}}
	s.reader = reader{stmt: s.read.get}
	if e.Write != nil {
		s.committer = newCommitter(&e)
	}
	return s
}

// Node returns the id of this process.
func (s *Store) Node() string { return s.engine.Node.ID }

// Write implements [store.Store].
func (s *Store) Write(ctx context.Context, fn func(store.Tx) error) error {
	return s.write(ctx, &request{fn: fn})
}

// WriteLast implements [store.Store].
func (s *Store) WriteLast(ctx context.Context, fn func(store.Tx) error) error {
	return s.write(ctx, &request{fn: fn, last: true})
}

func (s *Store) write(ctx context.Context, r *request) error {
	if s.committer == nil {
		return store.ErrReadOnly
	}
	return s.committer.do(ctx, r)
}

// Snapshot implements [store.Store].
func (s *Store) Snapshot(ctx context.Context, fn func(store.Reader) error) error {
	tx, err := s.engine.Read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelDefault})
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing was written
	return fn(&reader{stmt: func(ctx context.Context, query string) (*sql.Stmt, error) {
		stmt, err := s.read.get(ctx, query)
		if err != nil {
			return nil, err
		}
		return tx.StmtContext(ctx, stmt), nil
	}})
}

// Appended reports whether this process has added to its chain.
func (s *Store) Appended() bool { return s.committer != nil && s.committer.appended.Load() }

// Drain commits what was accepted, closes the node's books and refuses further
// writes. Reads go on until Close.
func (s *Store) Drain() error {
	if s.committer == nil {
		return nil
	}
	return s.committer.stop()
}

// Close drains the store and closes both handles.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		err = errors.Join(s.Drain(), s.read.close(), s.engine.Read.Close())
		if s.engine.Write != nil {
			err = errors.Join(err, s.engine.Write.Close())
		}
	})
	return err
}

// stmts keeps statements prepared, by their text. Texts are few: they are
// constants, or put together from a few conditions.
type stmts struct {
	rebind  func(string) string
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)

	mu   sync.Mutex
	kept map[string]*sql.Stmt
}

func (s *stmts) get(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt, ok := s.kept[query]; ok {
		return stmt, nil
	}
	text := query
	if s.rebind != nil {
		text = s.rebind(query)
	}
	stmt, err := s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	if s.kept == nil {
		s.kept = make(map[string]*sql.Stmt)
	}
	s.kept[query] = stmt
	return stmt, nil
}

func (s *stmts) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stmt := range s.kept {
		err = errors.Join(err, stmt.Close())
	}
	clear(s.kept)
	return err
}
