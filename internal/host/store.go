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
	memoryRow       = store.MemoryRow
	messageRow      = store.MessageRow
	pluginRow       = store.PluginRow
	policyRow       = store.PolicyRow
	secretName      = store.SecretName
	stepRow         = store.StepRow
	tickOutcome     = store.TickOutcome
	tokenRow        = store.TokenRow
)

const (
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
