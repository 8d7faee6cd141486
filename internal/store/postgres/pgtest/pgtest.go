// Package pgtest gives tests a PostgreSQL server of their own.
//
// The server belongs to the process, listens on a Unix socket in a temporary
// directory and on nothing else, and keeps its promises as one in production
// does (fsync is on). It and its directory are gone when the process is, however
// that ends: a watcher holds the other end of a pipe. The smallest use:
//
//	st, err := postgres.Open(ctx, pgtest.Open(t), postgres.Options{Home: t.TempDir()})
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

var (
	shared   = sync.OnceValues(start)
	database atomic.Int64
)

// Open returns the URL of a new and empty database on the server of this
// process, which the first call starts. Where there is no server to be had the
// test is skipped, with the reason.
func Open(t testing.TB) string {
	t.Helper()
	server, err := shared()
	return open(t, server, err)
}

// New starts a server for t alone, for tests that stop it.
func New(t testing.TB) *Server {
	t.Helper()
	server, err := start()
	if err != nil {
		skip(t, err)
	}
	t.Cleanup(server.close)
	return server
}

// Open returns the URL of a new and empty database.
func (s *Server) Open(t testing.TB) string {
	t.Helper()
	return open(t, s, nil)
}

func open(t testing.TB, s *Server, err error) string {
	t.Helper()
	if err != nil {
		skip(t, err)
	}
	return s.create(t, "template1")
}

// Copy returns the URL of a new database on the server of this process, with
// everything that the database template has, which is another of this server. Copy
// waits until no client is connected to template.
func Copy(t testing.TB, template string) string {
	t.Helper()
	server, err := shared()
	if err != nil {
		skip(t, err)
	}
	u, err := url.Parse(template)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	conn, err := pgx.Connect(t.Context(), server.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// The server ends a session some time after its client has closed the connection.
	testwait.Until(t, "no session is in the database "+name, func() (left bool) {
		const none = "SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = $1)"
		if err := conn.QueryRow(t.Context(), none, name).Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left
	})
	return server.create(t, name)
}

func (s *Server) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test%d", database.Add(1))
	Exec(t, s.url("postgres"), "CREATE DATABASE "+name+" OWNER "+owner+" TEMPLATE "+template)
	return strings.Replace(s.url(name), "//"+super+"@", "//"+owner+"@", 1)
}

// The roles of the server: a host has one that may not pass over row-level security.
const super, owner = "mortise", "host"

// Super returns the URL of a database for who passes over row-level security.
func Super(url string) string { return strings.Replace(url, "//"+owner+"@", "//"+super+"@", 1) }

// Exec runs statements behind everyone's back.
func Exec(t testing.TB, url, query string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), Super(url))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func skip(t testing.TB, err error) {
	t.Helper()
	fmt.Fprintf(os.Stderr, "not run: %s: %v\n", t.Name(), err)
	t.Skipf("not run: %v", err)
}

// Shift sets the clock of a database apart from that of this machine, such as by "-2 hours", for all
// who connect to it from now on.
func Shift(t testing.TB, database, by string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range []string{
		"CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() + interval '" + by + "' $$",
		"ALTER DATABASE " + pgx.Identifier{conn.Config().Database}.Sanitize() + " SET search_path = public, pg_catalog", // public before what has the function of that name
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}
