package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// The store under the nouns, and what their changes are written and checked with.
type (
	Store  = store.Store
	Reader = store.Reader
	Tx     = store.Tx
)

// The rows that the nouns work on and do not answer with; rows.go has the others.
type (
	agentRow        = store.AgentRow
	agentState      = store.AgentState
	approvalState   = store.ApprovalState
	assignmentRow   = store.AssignmentRow
	conversationRow = store.ConversationRow
	identityRow     = store.IdentityRow
	kvKey           = store.KVKey
	kvRow           = store.KVRow
	memoryRow       = store.MemoryRow
	messageRow      = store.MessageRow
	pluginRow       = store.PluginRow
	policyRow       = store.PolicyRow
	secretName      = store.SecretName
	stepRow         = store.StepRow
	tickOutcome     = store.TickOutcome
	tokenRow        = store.TokenRow
	userRow         = store.UserRow
	tenantRow       = store.TenantRow
	userIdentity    = store.UserIdentity
	erasureRow      = store.ErasureRow
	entryBodyRow    = store.EntryBodyRow
	aliases         = store.Aliases
	retained        = store.Retained
	removal         = store.Removal
	removed         = store.Removed
	browserRow      = store.BrowserSessionRow
)

const (
	ownedSecrets = store.OwnedSecrets
	ownedTokens  = store.Kind("tokens in force")
	agentRunning = store.AgentRunning
	agentStopped = store.AgentStopped
	tickCalled   = store.TickCalled
)

// How the store says that what it keeps is not what was signed.
type (
	authorityError = store.AuthorityError
	bodyError      = store.BodyError
)

// neededBody returns the body of a hash, which has to be there; nil for no hash.
func neededBody(ctx context.Context, r Reader, tenant, hash string) ([]byte, error) {
	return store.NeededBody(ctx, r, tenant, hash)
}

// A Recovery says why nothing with effects runs.
type Recovery = store.Recovery

// readRecovery returns it, nil where the host is in none.
func readRecovery(ctx context.Context, r Reader) (*Recovery, error) {
	return store.ReadRecovery(ctx, r)
}

// endRecovery ends it, and reports whether there was one.
func endRecovery(tx Tx) (bool, error) { return store.EndRecovery(tx) }

// replaceAnchors has what a data directory remembers of the ledger follow its heads.
func replaceAnchors(ctx context.Context, st Store, home string) error {
	return store.ReplaceAnchors(ctx, st, home)
}

// expect is [store.Expect], and expectNothing [store.ExpectNothing].
var expect, expectNothing = store.Expect, store.ExpectNothing

// everywhere is [store.Everywhere], for what is looked up before it is known whose it is, and
// what is the site's.
var everywhere = store.Everywhere

// Everywhere returns a context for what is due in any tenant.
func Everywhere(ctx context.Context) context.Context { return everywhere(ctx) }

// A TenantRow is a tenant as it is kept.
type TenantRow = store.TenantRow

const scheduleActive = store.ScheduleActive

// retainedKinds are the kinds of data that have a period, in the order in which they are removed.
var retainedKinds = store.RetainedKinds

// anyLeft is [store.AnyLeft].
var anyLeft = store.AnyLeft

const retainPackages = store.RetainPackages

var errTampered = store.ErrTampered

// errUncertain is the error of a change of which it cannot be told whether it was made.
var errUncertain = store.ErrUncertain

// peerOn names a peer together with the channel that names it.
func peerOn(channel, peer string) string { return store.PeerOn(channel, peer) }

// isOutage reports whether an error says that the store cannot be used now.
func isOutage(err error) bool { return store.IsOutage(err) }
