package store

import (
	"context"
	"time"
)

// A Retained is a kind of data that is removed once it is older than a period.
type Retained string

// The kinds.
const (
	RetainBodies        Retained = "bodies"        // inputs, results, previews and answers of calls and plans that have ended; their hashes stay
	RetainCalls         Retained = "calls"         // calls that have ended, with their effects and approvals; those with a key of their caller's stay
	RetainSessions      Retained = "sessions"      // sessions with their artifacts, in which nothing happened and of which no call is under way
	RetainConversations Retained = "conversations" // conversations that are closed, with their messages
	RetainDeliveries    Retained = "deliveries"    // marks of what channels delivered, and events that no webhook took
	RetainCache         Retained = "cache"         // what plugins cached, and values whose time is over
	RetainPackages      Retained = "packages"      // files of removed plugins that the database holds for its nodes; of the site, in a context of [Everywhere]
)

// RetainedKinds are all of them, in the order in which they are applied.
var RetainedKinds = []Retained{RetainBodies, RetainCalls, RetainSessions, RetainConversations, RetainDeliveries, RetainCache, RetainPackages}

// What removes, as rows say it.
const (
	RemovedByRetention = "retention"
	RemovedByErasure   = "erasure"
)

// A Removable is what there is of a kind that a period would remove.
type Removable struct {
	Count  int64
	Bytes  int64     // of contents; rows are not counted
	Oldest time.Time // of them; zero where there are none
}

// A Removal says what is to be removed in one transaction.
type Removal struct {
	Tenant string
	Before time.Time // only what is older
	At     time.Time // now
	Limit  int       // at most so many rows
}

// A Removed is what one transaction removed.
type Removed struct {
	Count, Bytes int64
	Sessions     []string // ids of sessions that were removed, of whose processes and views the caller disposes
	Hashes       []string // of bytes elsewhere that no row may have any more
}

// An ErasureRow is the erasure of what is kept of a person, which goes on after a crash.
type ErasureRow struct {
	Tenant    string
	ID        string
	Principal string // as the ledger names it
	By        string // who asked for it
	AskedAt   time.Time
	Peers     []string // as channels name them, each a [PeerOn]; forgotten once it is done
	Counts    string   // JSON: what was removed so far, by kind
	DoneAt    time.Time
}

// Aliases are the names under which a person is found in tables.
type Aliases struct {
	Tenant string
	Name   string   // as the ledger names it: ada, service::robot
	Typed  string   // with its type: user::ada
	Type   string   // user
	ID     string   // ada
	Peers  []string // as channels name them, each a [PeerOn]
}

// PeerSeparator is between a channel and a peer. Neither has it: names of links are printable.
const PeerSeparator = "\n"

// PeerOn names a peer together with the channel that names them so: another channel may call
// another person the same.
func PeerOn(channel, peer string) string { return channel + PeerSeparator + peer }

// Is reports whether a column that names a principal names this one.
func (a *Aliases) Is(name string) bool {
	return name != "" && (name == a.Name || name == a.Typed)
}

// AnyLeft reports whether anything is left of what [RetentionReader.Unerased] counts.
func AnyLeft(left map[string]int64) bool {
	for _, n := range left {
		if n > 0 {
			return true
		}
	}
	return false
}

// A RetentionReader says what is due.
type RetentionReader interface {
	// Removable returns what there is of a kind in a tenant that is older than before.
	Removable(ctx context.Context, kind Retained, tenant string, before time.Time) (Removable, error)
	// Erasures returns the erasures of a tenant, the oldest first; with open those alone
	// that are not done.
	Erasures(ctx context.Context, tenant string, open bool) ([]ErasureRow, error)
	// Unerased returns how much there still is of what an erasure of a person removes, by its kind.
	// Every kind is in it. Calls and plans count until their bodies are removed, and so does each
	// while it has not ended.
	Unerased(ctx context.Context, who Aliases) (map[string]int64, error)
	// Unsettled returns how many calls and plans of a person have not ended.
	Unsettled(ctx context.Context, who Aliases) (int64, error)
}

// A RetentionWriter removes it.
type RetentionWriter interface {
	// Remove removes the oldest of a kind, and returns what; nothing where there is no more.
	// Bytes that another row needs stay. Entries of the ledger are never removed.
	Remove(kind Retained, of Removal) (Removed, error)
	// RemoveExpired removes bodies whose time is over and that no call, effect, approval or
	// plan names: what models were asked and answered.
	RemoveExpired(tenant string, at time.Time, limit int) (Removed, error)

	// PutErasure adds an erasure, or replaces what is known of it.
	PutErasure(row ErasureRow) error
	// EraseCalls removes the bodies of calls of a person that have ended, ErasePlans those of plans,
	// and EraseModels what models were asked and answered for the person. Each removes up to a limit,
	// and returns a count of 0 once nothing is left that can be removed.
	EraseCalls(who Aliases, at time.Time, limit int) (Removed, error)
	ErasePlans(who Aliases, at time.Time, limit int) (Removed, error)
	EraseModels(who Aliases, limit int) (Removed, error)
	// EraseSessions removes sessions and conversations of a person, but for those of which a
	// call is under way.
	EraseSessions(who Aliases, limit int) (Removed, error)
	// EraseAccess removes what lets a person in: tokens, sign-ins, the account and links.
	EraseAccess(who Aliases) (map[string]int64, error)
	// EraseRows removes other rows that are a person's, up to a limit of each table, and
	// returns how many of which; none where there are no more.
	EraseRows(who Aliases, limit int) (map[string]int64, error)
	// EraseShared removes rows of which no one can tell whose they are: what plugins cached, and
	// events that no webhook took. It returns how many of which.
	EraseShared(tenant string) (map[string]int64, error)
}

// A Scrubber is a store that can overwrite what was deleted from its files.
type Scrubber interface {
	// Scrub has nothing of deleted rows left in the files of the database, as far as the
	// engine can see to that.
	Scrub(ctx context.Context) error
}
