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
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is a [store.Store] but for the recovery of dead nodes, which the
// engine adds. One goroutine belongs to it, the committer's; it has ended when
// Close returns.
type Store struct {
	reader
	engine *Engine
	read   *stmts // nil where the driver keeps them

	committer *committer // nil for a store that only reads

	closed atomic.Bool // reads fail from now on
	once   sync.Once   // for Close
}

// New returns a Store over e, and starts it.
func New(e Engine) *Store {
	if e.Rebind != nil {
		e.Rebind = remembered(e.Rebind)
	}
	s := &Store{engine: &e}
	s.reader = reader{newest: e.Newest, own: e.Own, text: &e.Text, typed: e.Untyped, query: s.query, judge: s.judge}
	if !e.Caches {
		s.read = &stmts{rebind: e.rebind, prepare: e.Read.PrepareContext}
	}
	if e.Write != nil {
		s.committer = newCommitter(&e)
	}
	return s
}

// Node returns the id of this process.
func (s *Store) Node() string { return s.engine.Node.ID }

// Now implements [store.Clock].
func (s *Store) Now() time.Time {
	if s.engine.Now != nil {
		return s.engine.Now()
	}
	return time.Now()
}

// Write implements [store.Store].
func (s *Store) Write(ctx context.Context, fn func(store.Tx) error) error {
	fn, settle := store.Expecting(ctx, fn)
	err := s.write(&request{ctx: ctx, fn: fn, tenant: store.AllTenants})
	settle(err)
	return err
}

// WriteLast implements [store.Store].
func (s *Store) WriteLast(ctx context.Context, fn func(store.Tx) error) error {
	return s.write(&request{ctx: ctx, fn: fn, last: true, tenant: store.AllTenants})
}

func (s *Store) write(r *request) error {
	if s.committer == nil {
		return store.ErrReadOnly
	}
	return s.judge(r.ctx, s.committer.do(r))
}

// Snapshot implements [store.Store].
func (s *Store) Snapshot(ctx context.Context, fn func(store.Reader) error) error {
	return s.snapshot(ctx, store.AllTenants, fn)
}

func (s *Store) snapshot(ctx context.Context, tenant string, fn func(store.Reader) error) error {
	tx, err := s.begin(within(ctx, tenant))
	if err != nil {
		return s.judge(ctx, err)
	}
	defer tx.Rollback() // nothing was written
	return fn(&reader{part: func() string { return tenant }, newest: s.newest, own: s.own, text: s.text, typed: s.typed, judge: s.judge, query: func(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
		ctx = within(ctx, tenant)
		var stmt *sql.Stmt
		if s.read != nil {
			stmt = s.read.known(query)
		}
		if stmt == nil { // one more connection might be one more than there are
			return tx.QueryContext(ctx, s.engine.rebind(query), args...)
		}
		return tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	}})
}

func (s *Store) begin(ctx context.Context) (tx *sql.Tx, err error) {
	err = s.again(ctx, func() (err error) {
		tx, err = s.engine.Read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: s.engine.Isolation})
		return err
	})
	return tx, err
}

func (s *Store) query(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	if store.TenantOf(ctx) == "" {
		ctx = store.Everywhere(ctx) // this is the store of the site; see [Store.For]
	}
	if s.read != nil {
		stmt, err := s.read.get(ctx, query)
		if err != nil {
			return nil, err
		}
		return stmt.QueryContext(ctx, args...)
	}
	err = s.again(ctx, func() (err error) {
		rows, err = s.engine.Read.QueryContext(ctx, s.engine.rebind(query), args...)
		return err
	})
	return rows, err
}

// again runs a question until it is not for a lost connection that it fails. A
// server that was restarted has left a pool of dead ones, and each is found
// out by its next use.
func (s *Store) again(ctx context.Context, ask func() error) (err error) {
	for range max(1, s.engine.Read.Stats().MaxOpenConnections) {
		err = ask()
		if err == nil || ctx.Err() != nil || s.engine.fault(err) != Lost {
			break
		}
	}
	return err
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
		err = s.Drain()
		s.closed.Store(true)
		if s.read != nil {
			err = errors.Join(err, s.read.close())
		}
		err = errors.Join(err, s.engine.Read.Close())
		if s.engine.Write != nil {
			err = errors.Join(err, s.engine.Write.Close())
		}
	})
	return err
}

// remembered returns rebind with a memory. Texts are few: they are constants,
// or put together from a few conditions.
func remembered(rebind func(string) string) func(string) string {
	var texts sync.Map
	return func(query string) string {
		if text, ok := texts.Load(query); ok {
			return text.(string)
		}
		text := rebind(query)
		texts.Store(query, text)
		return text
	}
}

// stmts keeps statements prepared, by their text.
type stmts struct {
	rebind  func(string) string
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)

	mu   sync.Mutex
	kept map[string]*sql.Stmt
}

// get returns a statement, prepared if it is not yet. Preparing takes a connection, so
// it holds no lock meanwhile: the holder of the last connection may be waiting for a
// statement too.
func (s *stmts) get(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := s.known(query); stmt != nil {
		return stmt, nil
	}
	stmt, err := s.prepare(ctx, s.rebind(query))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.kept[query]; ok {
		return first, stmt.Close()
	}
	if s.kept == nil {
		s.kept = make(map[string]*sql.Stmt)
	}
	s.kept[query] = stmt
	return stmt, nil
}

// known returns a statement that is prepared, nil if it is not.
func (s *stmts) known(query string) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[query]
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
