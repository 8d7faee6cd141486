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
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
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
	name := fmt.Sprintf("test%d", database.Add(1))
	Exec(t, s.url("postgres"), "CREATE DATABASE "+name+" OWNER "+owner)
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
