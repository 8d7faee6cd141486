// Package store is the contract for keeping a host's state: what may be
// written, what may be read, and what a write promises.
//
// There is one way to write, [Store.Write]. The closures of concurrent callers share a
// transaction (a group commit), no caller is told of success before that transaction is
// durable, and entries get their place in the hash chain in the order of commits. Reads
// go to a pool beside it and never wait for writers.
//
// A value that callers race for is an answer, never an error: a key that was
// seen, a fence that was lost, a row that is not there.
//
// The engines are in the folders below, and storetest is what each must pass. The hash
// chain's arithmetic, its key and its anchors are in package chain, because verifying a
// ledger must not need the engine that wrote it.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/store/chain"
)

// A Store keeps a host's state. All methods are safe for concurrent use.
type Store interface {
	Reader
	Writer
}

// A Writer is what a store does besides answering.
type Writer interface {
	// Write runs fn in a transaction and returns once that transaction is
	// durable. fn shares it with the closures of other callers and is run
	// again when one of them fails, so it must not keep anything of an earlier
	// run, must not call Write, and should be quick: it holds up all others.
	//
	// An error from fn, or a panic in it, takes back everything fn did, is
	// returned to this caller, and does not touch the others. If ctx ends
	// before fn is taken into a transaction, fn is not run and the cause is
	// returned, with [ErrAway] where it ended while a server was waited for; once fn is
	// taken, Write waits for the outcome.
	//
	// After a commit has failed nothing can be said about what the disk holds:
	// that commit's callers and all later ones get [ErrFailed]. A server that
	// is away has not failed: it is waited for until ctx ends, and asked what
	// became of a commit that it did not answer.
	Write(ctx context.Context, fn func(Tx) error) error

	// WriteLast is Write for a process that is done: the transaction also
	// takes this node off the books, and does not put it there first if it
	// never was. fn may be nil. A later Write registers the node again.
	WriteLast(ctx context.Context, fn func(Tx) error) error

	// Snapshot runs fn with a Reader whose every answer is of one moment.
	Snapshot(ctx context.Context, fn func(Reader) error) error

	// Recover finds the nodes that died without closing the store. For each it runs fn in
	// the transaction that removes the node's row, so that exactly one process recovers
	// each dead node, the first to commit. It returns the number of nodes.
	Recover(ctx context.Context, fn func(Tx, NodeRow) error) (int, error)

	// Watch has fn called after each transaction of this process that appended entries,
	// before its callers hear of it, until stop is called. fn holds up all writers, so it
	// must only leave a signal. all reports that fn is called soon after those of every
	// other process too, and now and then for nothing.
	Watch(fn func()) (stop func(), all bool)

	// Node returns the id this process has in the nodes table.
	Node() string

	Clock

	// Close commits what was accepted, takes the node off the books unless it
	// leaves running calls or plans behind, and releases everything. Calls after
	// the first return nil.
	Close() error
}

// A Clock tells the time that all processes of a store share: that of the database's server, or
// of the one machine that has the file. A time that another process may compare comes from here.
type Clock interface {
	Now() time.Time
}

// A Reader answers questions, those of each noun by an interface of its own beside the
// rows. A row that does not exist is nil without an error. Ask for the interface, or the
// methods, that you use.
type Reader interface {
	CallReader
	EffectReader
	EntryReader
	BodyReader
	ApprovalReader
	PlanReader
	PluginReader
	TenantReader
	PolicyReader
	IdentityReader
	TokenReader
	UserReader
	BrowserSessionReader
	SessionReader
	ArtifactReader
	ScheduleReader
	KBReader
	KVReader
	SecretReader
	AgentReader
	ConversationReader
	OutboxReader
	BudgetReader
	NodeReader
	RetentionReader
	AuthorityReader
}

// A Tx is what a closure given to [Store.Write] can do. Its reads see the
// closure's own writes, entries excepted, and take no notice of their contexts:
// a transaction of many callers does not end with one of them. It must not be
// used after the closure has returned, nor be used otherwise while one of its
// sequences is being ranged over; the same holds for the Reader of a snapshot.
type Tx interface {
	Reader
	CallWriter
	EffectWriter
	EntryWriter
	BodyWriter
	ApprovalWriter
	PlanWriter
	PluginWriter
	TenantWriter
	PolicyWriter
	IdentityWriter
	TokenWriter
	UserWriter
	BrowserSessionWriter
	SessionWriter
	ArtifactWriter
	ScheduleWriter
	KBWriter
	KVWriter
	SecretWriter
	AgentWriter
	ConversationWriter
	OutboxWriter
	BudgetWriter
	NodeWriter
	RetentionWriter
	AuthorityWriter
}

// What a store says of itself. Both are wrapped with their cause.
var (
	ErrClosed   = errors.New("the store is closed")
	ErrReadOnly = errors.New("the store was opened for reading only")

	// ErrFailed is the end of a store's writing: a commit did not become
	// durable, and repeating it on what the disk may now hold would be a guess.
	ErrFailed = errors.New("the store stopped writing after a commit failed; repair the disk and restart")

	// ErrLapsed means that this process was paused, or cut off, for so long
	// that others may have taken it for dead and settled its calls. The write
	// did not happen: what it rested on may be over. The next one puts the
	// process on the books again.
	ErrLapsed = errors.New("this process did not renew its lease in time")

	// ErrUncertain means that it is unknown whether a write was made: its commit was not
	// answered, and no later query can tell.
	ErrUncertain = errors.New("whether a write was made cannot be told")

	// ErrTampered is [chain.ErrTampered].
	ErrTampered = chain.ErrTampered
)

// A NewerError refuses a database that a later release has migrated.
type NewerError struct {
	Database    string
	Have, Known int64 // schema versions: the database's, and the newest this binary knows
}

// Error names both versions and the way out.
func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has schema version %d and this binary knows none above %d: use the newer mortise that migrated it, or restore the backup made before",
		e.Database, e.Have, e.Known)
}
