package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

// An Engine is a database as its package opened it. The two handles belong to
// the Store made from it.
type Engine struct {
	Write *sql.DB // nil for a store that only reads
	Read  *sql.DB

	Begin     string                                       // starts a transaction that will write; a Server has its own
	Rebind    func(query string) string                    // from question marks; nil keeps them
	Keep      string                                       // ends a SELECT whose rows must stay as they are until the transaction ends; "" if the engine has no concurrent writers
	Caches    bool                                         // the driver prepares statements and keeps them by itself
	Isolation sql.IsolationLevel                           // in which a transaction that only reads is of one moment
	Own       *Ownership                                   // what tells Mortise's schema from additions to it
	Untyped   bool                                         // it keeps a value of any storage class in any column; readers take what the column declares
	Newest    string                                       // the order of entries, newest first
	Now       func() time.Time                             // the clock that all processes share; nil for that of this machine
	Text      TextIndex                                    // of the passages of documents
	Pinned    func(ctx context.Context, c *sql.Conn) error // checks the writing connection before its first use; nil checks nothing
	Full      func(err error) bool                         // a failed statement for which the disk had no room; nil if that cannot be told
	Room      func() bool                                  // gives up the reserve, and reports whether there was one; nil if there is none
	Same      func() error                                 // nil while the file is the one that was opened; nil if there is none to look at
	Fatal     func(err error) bool                         // a failed statement after which the disk cannot be trusted; nil if there are none
	Away      func(err error) bool                         // a failed statement that was not at fault, beside those that the others know; see Judge

	Chain int64                        // the one this process appends to, where all share it
	Key   func(Tx) (*store.Key, error) // called for the first entry, and only by the committer
	Node  store.NodeRow                // this process

	// Others has fn called soon after other processes commit; all is false where it cannot.
	// It is nil for an engine that hears of none.
	Others func(fn func()) (stop func(), all bool)

	Enter func() error                          // before the transaction that puts the node on the books; nil does nothing
	Leave func(ctx context.Context, clean bool) // after the one that took it off, or, not clean, when it ends with its books open

	Server *Server // nil for a file
}

// A Server is what an engine knows more of a database that is reached over a
// connection and shared by nodes: it may go away in the middle of anything, and
// other nodes may have taken this one for dead.
//
// Every transaction leaves a mark in its chain, so that one whose commit was
// not answered can be found again, or found missing.
type Server struct {
	Patience time.Duration // for one transaction, and for one attempt to connect
	Grace    time.Duration // for a server that is away when the store is closed

	// Hold is the first thing in each transaction. It locks this node's chain
	// until the end of the transaction and returns where that is, or fails with
	// [store.ErrLapsed] if others may have taken this node for dead. A node
	// that is not on the books takes a free chain, for this transaction only
	// unless it is to stay.
	Hold func(tx Tx, how Holding) (Place, error)

	// Begin starts a transaction and scans the first row of a first query in
	// it, both in one round trip. That query is Hold's.
	Begin func(ctx context.Context, c *sql.Conn, dest []any, query string, args ...any) (bool, error)

	// Commit runs a last statement and commits, in one round trip, and does not
	// take a rollback for a commit. The statement is Append or Mark.
	Commit func(ctx context.Context, c *sql.Conn, query string, args ...any) error

	// Append appends entries and moves the head of their chain: its arguments
	// are an array for each column of entries, as they are in order, and then
	// the new head's seq, hash, MAC and authority, and the chain.
	Append string
	// Order is a statement that waits for the other transactions that change what
	// decides authority, and holds them up until this one has ended.
	Order string

	Mark string // leaves a mark where no entry does; its argument is the chain

	Fault func(err error) Fault

	// Settled finds out whether the transaction that was to move a chain from
	// before to after did so. When it returns without an error the transaction
	// is over, and what it left is as safe as if its commit had been answered.
	Settled func(ctx context.Context, before, after Place) (bool, error)
}

// A Holding says on what terms a node holds its chain.
type Holding int

// The terms.
const (
	Stays   Holding = iota // it is on the books
	Joins                  // it is to be on the books from now on
	Borrows                // it is not, nor will it be
)

// A Place is where a transaction finds a chain, or leaves it.
type Place struct {
	Head store.ChainRow // Seq is 0 before the first entry
	Mark int64          // counts the transactions that appended nothing
}

// A Fault is what a failed statement means for its transaction.
type Fault int

// The faults.
const (
	Refused Fault = iota // the statement's own: it would fail again
	Clashed              // with another transaction: all of this one may be tried again
	Lost                 // the connection is gone, or the server cannot be reached
	Full                 // the disk has no room; nothing was written
)

// A Tx is the transaction being written, for an engine's own statements. Those
// that Write's closures are given are of this kind.
type Tx interface {
	store.Tx

	// Exec runs a statement and reports whether it changed anything.
	Exec(query string, args ...any) (bool, error)
	// Row scans the first row of an answer and reports whether there was one.
	Row(dest []any, query string, args ...any) (bool, error)
}

func (e *Engine) rebind(query string) string {
	if e.Rebind == nil {
		return query
	}
	return e.Rebind(query)
}

func (e *Engine) fault(err error) Fault {
	if err != nil && e.Full != nil && e.Full(err) {
		return Full
	}
	if e.Server == nil || err == nil {
		return Refused
	}
	return e.Server.Fault(err)
}

// Judge returns an error of the database as callers of a store get it: marked with
// [store.ErrAway] if the database cannot be used now, and as it is if the statement would fail
// again. What ended with its caller's context is the caller's.
func (e *Engine) Judge(ctx context.Context, err error) error {
	if err == nil || store.IsOutage(err) || ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	if e.fault(err) == Refused && (e.Away == nil || !e.Away(err)) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrAway, err)
}

// judge is [Engine.Judge] for a store, which may be closed.
func (s *Store) judge(ctx context.Context, err error) error {
	if err != nil && s.closed.Load() && !store.IsOutage(err) {
		return fmt.Errorf("%w: %w", store.ErrClosed, err)
	}
	return s.engine.Judge(ctx, err)
}
