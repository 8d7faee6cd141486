package postgres

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/mortise-dev/mortise/internal/store"
)

// A connector opens connections that tell the server whose rows each statement is about.
type connector struct{ driver.Connector }

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: opened.(*stdlib.Conn)}, nil
}

// A conn is a connection that knows what mortise.tenant is on the server. Before a
// statement whose context is of another tenant it sets that: for the rest of a transaction
// within one, and until the next change outside. A context of no tenant sees no rows.
type conn struct {
	*stdlib.Conn
	tenant  string // as the server has it now
	session string // as it has it outside the transaction
	within  bool   // a transaction
}

const everyTenant = store.AllTenants

const setTenant = "SELECT set_config('mortise.tenant', $1, $2)"

// be makes the connection that of a context's tenant.
func (c *conn) be(ctx context.Context) error {
	tenant := store.TenantOf(ctx)
	if tenant == c.tenant {
		return nil
	}
	rows, err := c.Conn.QueryContext(ctx, setTenant, []driver.NamedValue{{Ordinal: 1, Value: tenant}, {Ordinal: 2, Value: c.within}})
	if err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return err
	}
	c.became(tenant)
	return nil
}

func (c *conn) became(tenant string) {
	if c.tenant = tenant; !c.within {
		c.session = tenant
	}
}

// over is called when a transaction has ended: what was set in it is undone.
func (c *conn) over() { c.within, c.tenant = false, c.session }

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.be(ctx); err != nil {
		return nil, err
	}
	return c.Conn.QueryContext(ctx, query, args)
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "ROLLBACK") { // also where no other statement would be answered
		defer c.over()
		return c.Conn.ExecContext(ctx, query, args)
	}
	if err := c.be(ctx); err != nil {
		return nil, err
	}
	return c.Conn.ExecContext(ctx, query, args)
}

// BeginTx implements [driver.ConnBeginTx].
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.be(ctx); err != nil {
		return nil, err
	}
	tx, err := c.Conn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.within = true
	return transaction{tx, c}, nil
}

// A transaction tells its connection when it is over.
type transaction struct {
	driver.Tx
	conn *conn
}

// Commit implements [driver.Tx].
func (t transaction) Commit() error {
	defer t.conn.over()
	return t.Tx.Commit()
}

// Rollback implements [driver.Tx].
func (t transaction) Rollback() error {
	defer t.conn.over()
	return t.Tx.Rollback()
}

// enter has a batch that begins a transaction set the tenant of a context in it. The
// connection is told once the batch was answered.
func enter(ctx context.Context, batch *pgx.Batch) func(*conn) {
	tenant := store.TenantOf(ctx)
	batch.Queue(setTenant, tenant, true)
	return func(c *conn) { c.within = true; c.became(tenant) }
}

// leave has the rest of a transaction be of all tenants.
func leave(batch *pgx.Batch) { batch.Queue(setTenant, store.AllTenants, true) }
