package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/mortise-dev/mortise/internal/store"
)

// A writer is the one connection that writes, with its statements. It belongs
// to the committer. Contexts of callers never reach it: a transaction of many
// is not interrupted for one.
type writer struct {
	engine *Engine
	conn   *sql.Conn
	stmts  *stmts
	key    *store.Key
}

// begin starts a transaction, on a new connection if the last one was lost.
func (w *writer) begin() (*tx, error) {
	ctx := context.Background()
	if w.conn == nil {
		conn, err := w.engine.Write.Conn(ctx)
		if err != nil {
			return nil, fmt.Errorf("opening the database for writing: %w", err)
		}
		if w.engine.Pinned != nil {
			if err := w.engine.Pinned(ctx, conn); err != nil {
				conn.Close()
				return nil, err
			}
		}
		w.conn, w.stmts = conn, &stmts{rebind: w.engine.Rebind, prepare: conn.PrepareContext}
	}
	if err := w.run(w.engine.Begin); err != nil {
		w.discard()
		return nil, fmt.Errorf("beginning a transaction: %w", err)
	}
	t := &tx{writer: w}
	t.reader = reader{stmt: w.stmts.get, calm: true}
	return t, nil
}

func (w *writer) commit() error { return w.run("COMMIT") }

// rollback ends the transaction. If that fails the connection goes too, and
// with it whatever it holds.
func (w *writer) rollback() {
	if err := w.run("ROLLBACK"); err != nil {
		w.discard()
	}
}

// discard closes the connection for good: the pool does not get it back.
func (w *writer) discard() {
	if w.conn == nil {
		return
	}
	w.stmts.close()
	w.conn.Raw(func(any) error { return driver.ErrBadConn })
	w.conn.Close()
	w.conn, w.stmts = nil, nil
}

func (w *writer) run(query string, args ...any) error {
	_, err := w.exec(query, args...)
	return err
}

func (w *writer) exec(query string, args ...any) (sql.Result, error) {
	ctx := context.Background()
	stmt, err := w.stmts.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}
