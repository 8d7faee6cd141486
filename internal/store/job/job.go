// Package job wakes what waits, on whichever node is free: a call, a plan, a
// conversation, a webhook.
//
// The work itself is decided elsewhere: a wake-up is a kind, a tenant and an
// id, and the node that takes it reads the store for what there is to do. So a
// wake-up may come twice, late or not at all. One that fails is dropped, and
// the sweep of package worker finds what was lost.
//
//	q, err := job.Open(job.Options{Home: dir})
//	defer q.Close()
//	err = q.Wake(ctx, job.Call, tenant, id, time.Time{})
//
// The engine is River, in a SQLite file of its own, so that the ledger's writer
// never waits for it, or in a schema of its own in the store's PostgreSQL.
package job

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
)

// What can be woken.
const (
	Call         = "call"
	Plan         = "plan"
	Conversation = "conversation" // a message waits in it
	Webhook      = "webhook"      // events wait for it
	Agent        = "agent"        // was started or stopped
)

// File is the name of the queue's database in a data directory. It holds
// nothing that is not found again: it may be deleted while no host runs.
const File = "jobs.db"

// Schema is where the queue is in a PostgreSQL database.
const Schema = "mortise_jobs"

const (
	// longest is how long what was woken may take. No call may take longer than
	// a day, so that this ends only what would never end by itself.
	longest = 25 * time.Hour
	stale   = 24 * time.Hour  // after which a wake-up that was never taken is deleted
	keep    = time.Minute     // how long one is kept that was done
	grace   = 5 * time.Second // for a database that is away when the queue is closed
)

// ErrClosed is what a queue says that was closed.
var ErrClosed = errors.New("the queue is closed")

// Options say which queue is meant.
type Options struct {
	Home     string       // the data directory, where the queue is in SQLite
	Database string       // the URL of a PostgreSQL database; empty is SQLite
	Log      *slog.Logger // the engine's own log; discarded where it is nil
}

// A Queue holds wake-ups. All methods are safe for concurrent use.
type Queue struct {
	opts Options

	mu     sync.Mutex // guards the two below, and is held while the database is opened
	engine engine     // nil until it is needed
	closed bool
}

// An engine is River on one kind of database, whose transactions it hides.
type engine interface {
	insert(ctx context.Context, w wake, opts *river.InsertOpts) error
	work(ctx context.Context, workers int, handle Handle) error
	close()
}

// Handle does what there is to do for what was woken. An error is logged and no
// more: a wake-up is not repeated. Its context does not end with that of Work.
type Handle func(ctx context.Context, kind, tenant, id string) error

// wake is what a job holds, and all it holds.
type wake struct {
	What   string `json:"what"`
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
}

// Kind implements river.JobArgs.
func (wake) Kind() string { return "wake" }

// Open returns the queue of a host. Nothing is touched before its first use:
// most commands send no wake-up.
func Open(opts Options) *Queue {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Queue{opts: opts}
}

// Wake lets some node look at what waits, not before at; at once where
// that is zero. A time in the future is kept within some seconds.
func (q *Queue) Wake(ctx context.Context, kind, tenant, id string, at time.Time) error {
	e, err := q.opened(ctx)
	if err != nil {
		return err
	}
	// A server that was restarted has left connections that are dead and do not
	// know it, each found out by its next use. Waking twice does no harm.
	for range staleConnections {
		if err = e.insert(ctx, wake{kind, tenant, id}, &river.InsertOpts{MaxAttempts: 1, ScheduledAt: at}); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// staleConnections is how many dead connections Wake gets over.
const staleConnections = 5

// Work hands wake-ups to handle, at most workers of them at a time, until ctx
// ends. Then it takes no more, waits for those that are being handled, and
// returns nil.
func (q *Queue) Work(ctx context.Context, workers int, handle Handle) error {
	e, err := q.opened(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return e.work(ctx, workers, handle)
}

// Close releases the database. Work must have returned. It may be called again.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.engine != nil {
		q.engine.close()
		q.engine = nil
	}
	return nil
}

// opened opens the database where that was not done yet.
func (q *Queue) opened(ctx context.Context) (engine, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	if q.engine == nil {
		open := openSQLite
		if q.opts.Database != "" {
			open = openPostgres
		}
		e, err := open(ctx, q.opts)
		if err != nil {
			return nil, err
		}
		q.engine = e
	}
	return q.engine, nil
}
