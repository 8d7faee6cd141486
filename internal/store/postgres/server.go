package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// oldest is the first server version that will do, as server_version_num.
const oldest = 130000

// facts are what a server says of a connection.
type facts struct {
	version     int
	synchronous string
	fsync       string
	encoding    string
	readOnly    bool
}

// errStandby is for a while only, when a standby is about to be promoted.
var errStandby = errors.New("the server takes no writes: it is a standby, or default_transaction_read_only is on; " +
	"name the primary, or all servers and target_session_attrs=read-write")

// judge refuses a server that would not keep what it acknowledges.
func (f facts) judge() error {
	switch {
	case f.version < oldest:
		return fmt.Errorf("the server is PostgreSQL %d and the oldest that will do is %d: upgrade it", f.version/10000, oldest/10000)
	case f.synchronous == "off":
		return errors.New("synchronous_commit is off, so an acknowledged write could be lost: take it out of the URL, the role and the server's configuration")
	case f.fsync != "on":
		return errors.New("fsync is off, so an acknowledged write could be lost: set fsync = on in the server's configuration")
	case f.encoding != "UTF8":
		return fmt.Errorf("the database's encoding is %s: create it with ENCODING 'UTF8'", f.encoding)
	case f.readOnly:
		return errStandby
	}
	return nil
}

// fit refuses a connection whose commits would not be durable. It makes the server end
// a session that stopped in the middle of a transaction once the lease of the stopped
// process is over, and so releases the locks that others wait for.
func fit(ctx context.Context, c *sql.Conn, lease time.Duration) error {
	var f facts
	err := c.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('synchronous_commit'), current_setting('fsync'),
		current_setting('server_encoding'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'
		FROM set_config('idle_in_transaction_session_timeout', $1, false)`, fmt.Sprint(lease.Milliseconds())).
		Scan(&f.version, &f.synchronous, &f.fsync, &f.encoding, &f.readOnly)
	if err != nil {
		return err
	}
	return f.judge()
}

var errRolledBack = errors.New("the server rolled back instead of committing")

// begin implements [sqlstore.Server].
func begin(ctx context.Context, c *sql.Conn, dest []any, query string, args ...any) (found bool, err error) {
	batch := &pgx.Batch{}
	batch.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	entered := enter(ctx, batch)
	batch.Queue(query, args...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(dest...)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return found, send(ctx, c, batch, entered)
}

// commit implements [sqlstore.Server]. The server's answer to COMMIT in a
// transaction that failed is that it rolled back, which is not an error of the
// protocol.
func commit(ctx context.Context, c *sql.Conn, query string, args ...any) error {
	batch := &pgx.Batch{}
	leave(batch) // the last statement is of all whose writes these are
	batch.Queue(query, args...)
	batch.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errRolledBack
		}
		return nil
	})
	return send(ctx, c, batch, (*conn).over)
}

// send sends a batch, and tells the connection what it was where it was answered.
func send(ctx context.Context, c *sql.Conn, batch *pgx.Batch, done func(*conn)) error {
	return c.Raw(func(dc any) error {
		own := dc.(*conn)
		err := own.Conn.Conn().SendBatch(ctx, batch).Close()
		if err == nil {
			done(own)
		}
		return err
	})
}

// full reports whether the server had no room for what was written. Its
// transaction is over then, without a trace.
func full(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && said.Code == "53100" || errors.Is(err, syscall.ENOSPC)
}

// outages are classes of codes (SQLSTATE) of a server that cannot be used, beside those that fault
// knows: no access, no such database, no resources, stopped by its administrator, failing disk.
var outages = []string{"28", "3D", "53", "57", "58", "XX001", "XX002"}

// away reports whether err says that the server could not be used.
func away(err error) bool {
	if fault(err) != sqlstore.Refused {
		return true
	}
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return slices.ContainsFunc(outages, func(class string) bool { return strings.HasPrefix(said.Code, class) })
	}
	var connecting *pgconn.ConnectError
	return errors.As(err, &connecting)
}

// fault implements [sqlstore.Server].
func fault(err error) sqlstore.Fault {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		switch said.Code {
		case "40001", "40P01", // serialization failure, deadlock
			"55P03", "57014", // lock not available, statement timeout
			"0A000": // a cached plan of before a migration
			return sqlstore.Clashed
		case "57P01", "57P02", "57P03", "57P05", // terminated, crashed, starting or stopping
			"25P03", // was idle in its transaction for too long
			"53300", // too many connections
			"25006": // became a standby
			return sqlstore.Lost
		}
		if strings.HasPrefix(said.Code, "08") {
			return sqlstore.Lost
		}
		return sqlstore.Refused
	}
	var network net.Error
	switch {
	case errors.Is(err, errRolledBack):
		return sqlstore.Clashed
	case errors.Is(err, errStandby), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, context.DeadlineExceeded), errors.As(err, &network), pgconn.SafeToRetry(err):
		return sqlstore.Lost
	}
	return sqlstore.Refused
}
