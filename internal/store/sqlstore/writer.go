package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A writer is the one connection that writes, with its statements. It belongs
// to the committer. Contexts of callers never reach it: a transaction of many
// is not interrupted for one.
type writer struct {
	engine *Engine
	conn   *sql.Conn // nil until it is needed, and after it was lost
	stmts  *stmts    // nil where the driver keeps them
	key    *store.Key

	entries []plugin.Entry // room for those of the next transaction
	args    []any          // and for the arguments of a statement that inserts them

	inserts map[string]driver.Stmt // of insert, by their text
	values  []driver.NamedValue    // room for what they are given

	ctx    context.Context // of the transaction
	cancel context.CancelFunc
	tenant string // whose closure runs; [store.AllTenants] around them
}

// within returns ctx with whose rows a statement works on: all where the statement says
// so, and otherwise those of the closure that runs.
func (w *writer) within(ctx context.Context) context.Context {
	if store.TenantOf(ctx) == store.AllTenants {
		return ctx
	}
	return store.InTenant(ctx, w.tenant)
}

// connect opens the connection if there is none.
func (w *writer) connect() error {
	if w.conn != nil {
		return nil
	}
	ctx, cancel := w.patience()
	defer cancel()
	conn, err := w.engine.Write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("opening the database for writing: %w", err)
	}
	w.conn = conn
	if w.engine.Pinned != nil {
		if err := w.engine.Pinned(ctx, conn); err != nil {
			w.discard()
			return err
		}
	}
	if !w.engine.Caches {
		w.stmts = &stmts{rebind: w.engine.rebind, prepare: conn.PrepareContext}
	}
	return nil
}

// begin starts a transaction; where that is a server's it starts with the first
// row that is asked for.
func (w *writer) begin() (*tx, error) {
	w.ctx, w.cancel = w.patience()
	w.tenant = store.AllTenants
	if err := fault.Err("begin"); err != nil {
		w.cancel()
		return nil, fmt.Errorf("beginning a transaction: %w", err)
	}
	if w.engine.Server == nil {
		if err := w.run(w.engine.Begin); err != nil {
			w.discard()
			return nil, fmt.Errorf("beginning a transaction: %w", err)
		}
	}
	t := &tx{writer: w, chain: w.engine.Chain, entries: w.entries[:0]}
	t.reader = reader{newest: w.engine.Newest, own: w.engine.Own, text: &w.engine.Text, typed: w.engine.Untyped, query: w.query, calm: w.ctx, keep: w.engine.Keep, failed: t.fail,
		part: func() string { return w.tenant }}
	t.Verified = store.Verified{Reader: &t.reader, By: t}
	return t, nil
}

// maxSpare is how many entries a transaction may leave room for.
const maxSpare = 4096

// spare keeps the room of a transaction's entries for the next one.
func (w *writer) spare(t *tx) {
	clear(t.entries)
	clear(w.args)
	if w.entries = nil; cap(t.entries) <= maxSpare {
		w.entries = t.entries[:0]
	}
}

func (w *writer) patience() (context.Context, context.CancelFunc) {
	if s := w.engine.Server; s != nil {
		return context.WithTimeout(context.Background(), s.Patience)
	}
	return context.Background(), func() {}
}

// commit ends the transaction, for a server with a last statement.
func (w *writer) commit(last string, args []any) error {
	defer w.cancel()
	if err := fault.Err("commit"); err != nil {
		return err
	}
	if s := w.engine.Server; s != nil {
		if err := s.Commit(w.ctx, w.conn, w.engine.rebind(last), args...); err != nil {
			return err
		}
	} else if err := w.run("COMMIT"); err != nil {
		return err
	}
	return fault.Err("committed")
}

// rollback ends the transaction. If that fails the connection goes too, and
// with it whatever it holds.
func (w *writer) rollback() {
	defer w.cancel()
	if err := w.run("ROLLBACK"); err != nil {
		w.discard()
	}
}

// discard closes the connection for good: the pool does not get it back.
func (w *writer) discard() {
	if w.conn == nil {
		return
	}
	if w.stmts != nil {
		w.stmts.close()
	}
	w.conn.Raw(func(any) error {
		for _, stmt := range w.inserts {
			_ = stmt.Close()
		}
		return driver.ErrBadConn
	})
	w.conn.Close()
	w.conn, w.stmts, w.inserts = nil, nil, nil
}

func (w *writer) run(query string, args ...any) error {
	_, err := w.exec(query, args...)
	return err
}

func (w *writer) exec(query string, args ...any) (sql.Result, error) {
	if w.stmts == nil {
		return w.conn.ExecContext(w.within(w.ctx), w.engine.rebind(query), args...)
	}
	stmt, err := w.stmts.get(w.ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(w.ctx, args...)
}

// insert executes a statement whose many arguments the driver takes as they are, in room that
// is kept. Package sql would allocate 40 bytes for each argument, each time.
func (w *writer) insert(query string, args []any) error {
	return w.conn.Raw(func(conn any) (err error) {
		stmt := w.inserts[query]
		if stmt == nil {
			if stmt, err = conn.(driver.ConnPrepareContext).PrepareContext(w.ctx, w.engine.rebind(query)); err != nil {
				return err
			}
			if w.inserts == nil {
				w.inserts = map[string]driver.Stmt{}
			}
			w.inserts[query] = stmt
		}
		values := w.values[:0]
		for i, arg := range args {
			values = append(values, driver.NamedValue{Ordinal: i + 1, Value: arg})
		}
		_, err = stmt.(driver.StmtExecContext).ExecContext(w.ctx, values)
		clear(values)
		w.values = values
		return err
	})
}

func (w *writer) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if w.stmts == nil {
		return w.conn.QueryContext(w.within(ctx), w.engine.rebind(query), args...)
	}
	stmt, err := w.stmts.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}
