package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// What a server, or the way to it, says when it cannot be used is an outage, for a store that
// writes and for one that only reads; what it says of a statement is not.
func TestJudge(t *testing.T) {
	t.Parallel()
	code := func(code string) error { return fmt.Errorf("asking: %w", &pgconn.PgError{Code: code}) }
	_, refused := pgconn.Connect(t.Context(), "postgres://none@127.0.0.1:1/none?connect_timeout=5")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		err    error
		outage bool
	}{
		"connection exception": {code("08000"), true}, "no connection": {code("08001"), true}, "connection failure": {code("08006"), true}, "protocol": {code("08P01"), true},
		"terminated": {code("57P01"), true}, "crashed": {code("57P02"), true}, "starting": {code("57P03"), true}, "no such database now": {code("57P04"), true},
		"idle": {code("57P05"), true}, "idle in a transaction": {code("25P03"), true}, "a standby": {code("25006"), true}, "statement timeout": {code("57014"), true},
		"full": {code("53100"), true}, "no memory": {code("53200"), true}, "too many connections": {code("53300"), true}, "configuration": {code("53400"), true},
		"input/output": {code("58030"), true}, "corrupted": {code("XX001"), true}, "corrupted index": {code("XX002"), true},
		"serialization": {code("40001"), true}, "deadlock": {code("40P01"), true}, "locked": {code("55P03"), true}, "cached plan": {code("0A000"), true},
		"password": {code("28P01"), true}, "no database": {code("3D000"), true},
		"refused": {refused, true}, "reset": {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, true}, "closed": {net.ErrClosed, true},
		"end": {io.ErrUnexpectedEOF, true}, "bad connection": {driver.ErrBadConn, true}, "too late": {fmt.Errorf("connecting: %w", context.DeadlineExceeded), true},
		"rolled back": {errRolledBack, true}, "standby": {errStandby, true}, "disk": {syscall.ENOSPC, true},
		"marked": {fmt.Errorf("%w: it is away", store.ErrAway), true}, "lapsed": {store.ErrLapsed, true}, "failed": {store.ErrFailed, true},

		"unique": {code("23505"), false}, "syntax": {code("42601"), false}, "no table": {code("42P01"), false}, "a number": {code("22003"), false}, "a fault of the server": {code("XX000"), false},
		"aborted": {code("25P02"), false}, "no rights": {code("42501"), false}, "another error": {errors.New("a fault of the host"), false},
		"read only": {store.ErrReadOnly, false}, "tampered": {store.ErrTampered, false},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, e := range map[string]sqlstore.Engine{
				"writes": {Away: away, Full: full, Server: &sqlstore.Server{Fault: fault}},
				"reads":  {Away: away},
			} {
				got := e.Judge(t.Context(), c.err)
				if store.IsOutage(got) != c.outage || !errors.Is(got, c.err) {
					t.Errorf("a store that %s: %v is judged %v, an outage: %t, want %t", kind, c.err, got, store.IsOutage(got), c.outage)
				}
			}
		})
	}
	e := sqlstore.Engine{Away: away, Server: &sqlstore.Server{Fault: fault}}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded} {
		if got := e.Judge(cancelled, fmt.Errorf("asking: %w", err)); store.IsOutage(got) {
			t.Errorf("what ends with the caller is judged %v", got)
		}
	}
}
