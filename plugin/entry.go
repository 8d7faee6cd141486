package plugin

import (
	"encoding/json"
	"time"
)

// An Entry is one line of the ledger: append-only, and chained to the line
// before it by hash.
type Entry struct {
	Chain     int64           `json:"chain"`
	Seq       int64           `json:"seq"` // from 1 within its chain, without gaps
	At        time.Time       `json:"at"`  // to the microsecond, UTC
	Tenant    string          `json:"tenant"`
	Kind      EntryKind       `json:"kind"`
	Subject   string          `json:"subject"`   // what it is about: a call's id, a plugin's name@version
	Principal string          `json:"principal"` // the principal that caused it
	Body      json.RawMessage `json:"body"`      // for call.* and service.*, a [CallRecord]
	Prev      string          `json:"prev"`      // hash of the entry before, in hexadecimal
	Hash      string          `json:"hash"`
}

// An EntryKind is what an entry records.
type EntryKind string

// The kinds of entries.
const (
	EntryCallStarted   EntryKind = "call.started"   // claimed: an effect may follow
	EntryCallSucceeded EntryKind = "call.succeeded" // ran, and its output passed all checks
	EntryCallFailed    EntryKind = "call.failed"    // ran and failed
	EntryCallRefused   EntryKind = "call.refused"   // never reached the plugin
	EntryCallUnknown   EntryKind = "call.unknown"   // an effect may or may not have happened
	EntryCallReplayed  EntryKind = "call.replayed"  // answered with the first answer to its key
	EntryCallPending   EntryKind = "call.pending"   // claimed, and waits for an approval
	EntryCallQueued    EntryKind = "call.queued"    // claimed, or released by its node: any node may run it
	EntryCallProgress  EntryKind = "call.progress"  // the operator continues outside the host
	EntryCallCancel    EntryKind = "call.cancel"    // cancellation was requested
	EntryCallSettled   EntryKind = "call.settled"   // an unknown outcome was determined by the operator or a person

	EntryControlRefused EntryKind = "control.refused" // a principal was not allowed to see, stop or settle a call or a plan

	EntryEffectIntent EntryKind = "effect.intent" // about to be sent
	EntryEffectDone   EntryKind = "effect.done"   // answered
	EntryEffectLate   EntryKind = "effect.late"   // answered after its call had ended

	EntryApprovalRequested EntryKind = "approval.requested"
	EntryApprovalApproved  EntryKind = "approval.approved"
	EntryApprovalDenied    EntryKind = "approval.denied"
	EntryApprovalExpired   EntryKind = "approval.expired"
	EntryApprovalVoid      EntryKind = "approval.void"
	EntryApprovalConsumed  EntryKind = "approval.consumed"
	EntryApprovalRefused   EntryKind = "approval.refused" // a decision by a principal who is not, or no longer, an approver

	EntryPlanProposed  EntryKind = "plan.proposed"
	EntryPlanStarted   EntryKind = "plan.started"
	EntryPlanSucceeded EntryKind = "plan.succeeded"
	EntryPlanFailed    EntryKind = "plan.failed"
	EntryPlanUnknown   EntryKind = "plan.unknown"
	EntryPlanCancelled EntryKind = "plan.cancelled"
	EntryPlanRefused   EntryKind = "plan.refused"

	EntryPolicyPut      EntryKind = "policy.put"
	EntryPolicyDeleted  EntryKind = "policy.deleted"
	EntryPolicyRefused  EntryKind = "policy.refused" // a principal may not change policies
	EntryIdentityLinked EntryKind = "identity.linked"
	EntryIdentityGone   EntryKind = "identity.unlinked"

	EntryIdentityRefused EntryKind = "identity.refused" // a principal may not link identities
	EntryTokenCreated    EntryKind = "token.created"
	EntryTokenRotated    EntryKind = "token.rotated" // replaced by a new secret
	EntryTokenRevoked    EntryKind = "token.revoked"
	EntryTokenRefused    EntryKind = "token.refused" // an operation on tokens, or a use of a token, that is not allowed
	EntryUserCreated     EntryKind = "user.created"
	EntryUserDisabled    EntryKind = "user.disabled"
	EntryUserEnabled     EntryKind = "user.enabled"
	EntryUserInvited     EntryKind = "user.invited"
	EntryUserLinked      EntryKind = "user.linked"   // an identity was added to a user
	EntryUserUnlinked    EntryKind = "user.unlinked" // an identity was removed from a user
	EntryUserRefused     EntryKind = "user.refused"  // an operation on users that is not allowed, or a sign-in of an unknown subject
	EntryTenantCreated   EntryKind = "tenant.created"
	EntryTenantDisabled  EntryKind = "tenant.disabled" // requests of its principals are refused
	EntryTenantEnabled   EntryKind = "tenant.enabled"
	EntryTenantRefused   EntryKind = "tenant.refused" // an operation on tenants that is not allowed
	EntrySignedIn        EntryKind = "session.signed_in"
	EntrySignedOut       EntryKind = "session.signed_out"
	EntryDeliveryRefused EntryKind = "delivery.refused" // an event for an adapter was refused

	EntryFeedCreated EntryKind = "feed.created"
	EntryFeedPaused  EntryKind = "feed.paused"
	EntryFeedResumed EntryKind = "feed.resumed"
	EntryFeedDeleted EntryKind = "feed.deleted"
	EntryFeedReset   EntryKind = "feed.reset"   // its cursors were deleted
	EntryFeedChanged EntryKind = "feed.changed" // its schedule or its input
	EntryFeedRefused EntryKind = "feed.refused" // an operation on a feed that is not allowed, or a run that was not started

	EntrySubscription EntryKind = "subscription.changed" // a principal subscribed to a plugin, or unsubscribed

	EntryAgentCreated  EntryKind = "agent.created"
	EntryAgentChanged  EntryKind = "agent.changed" // its settings or its memory
	EntryAgentStarted  EntryKind = "agent.started"
	EntryAgentStopped  EntryKind = "agent.stopped"
	EntryAgentDeleted  EntryKind = "agent.deleted"
	EntryAgentAssigned EntryKind = "agent.assigned" // a plugin was assigned to agents, or the assignment removed
	EntryAgentRefused  EntryKind = "agent.refused"  // a principal was not allowed to change, see or talk to an agent

	EntrySessionCreated EntryKind = "session.created"
	EntrySessionPillar  EntryKind = "session.pillar" // the pillar was changed
	EntrySessionClosed  EntryKind = "session.closed"
	EntrySessionResumed EntryKind = "session.resumed"
	EntrySessionDeleted EntryKind = "session.deleted" // with its artifacts
	EntrySessionRefused EntryKind = "session.refused" // a principal may not see or change it

	EntryKBCreated  EntryKind = "kb.created"
	EntryKBDeleted  EntryKind = "kb.deleted"  // with its documents
	EntryKBIngested EntryKind = "kb.ingested" // a person added a document; documents of plugins are effects of calls
	EntryKBRemoved  EntryKind = "kb.removed"  // a person deleted a document
	EntryKBRefused  EntryKind = "kb.refused"  // a principal may not see or change it

	EntryReferenceAdded   EntryKind = "reference.added"
	EntryReferenceRemoved EntryKind = "reference.removed"
	EntryReferenceRefused EntryKind = "reference.refused" // a principal may not change reference data
	EntryModelRefused     EntryKind = "model.refused"     // a principal may not test models

	EntryLedgerVerified EntryKind = "ledger.verified" // what was found when the host looked through all of it
	EntryLedgerRefused  EntryKind = "ledger.refused"  // a principal may not read the ledger
	EntryMetricsRefused EntryKind = "metrics.refused" // a principal may not see the host's metrics
	EntryBackupRefused  EntryKind = "backup.refused"  // a principal may not copy what the host keeps

	EntryArtifactRegistered EntryKind = "artifact.registered"

	// EntryServiceRefused: a running call requested a host service, an effect or an
	// address that it was not granted. Body is the [CallRecord] of that call so far.
	EntryServiceRefused EntryKind = "service.refused"

	// EntryModelCalled: a query to a language model, sent or refused by its budget. Body is
	// a [ModelRecord].
	EntryModelCalled EntryKind = "model.called"

	EntrySecretSet     EntryKind = "secret.set"
	EntrySecretDeleted EntryKind = "secret.deleted"
	EntrySecretRotated EntryKind = "secret.rotated" // all secrets were encrypted again with new keys
	EntrySecretRefused EntryKind = "secret.refused" // a principal may not change or see them

	// EntryPluginAudit: a record written by a plugin.
	EntryPluginAudit EntryKind = "plugin.audit"

	EntryPluginRegistered EntryKind = "plugin.registered"
	EntryPluginEnabled    EntryKind = "plugin.enabled"
	EntryPluginDisabled   EntryKind = "plugin.disabled"
	EntryPluginDeleted    EntryKind = "plugin.deleted"
	EntryPluginApproved   EntryKind = "plugin.approved"
	EntryPluginMapped     EntryKind = "plugin.mapped"  // an administrator classified an operation
	EntryPluginRefused    EntryKind = "plugin.refused" // a principal may not register or switch it

	// EntryPluginQuarantined: the files differ from those that were registered, or the
	// version from the one that was approved.
	EntryPluginQuarantined EntryKind = "plugin.quarantined"

	EntryRetentionApplied EntryKind = "retention.applied" // data removed at the end of its period, by kind
	EntryRetentionRefused EntryKind = "retention.refused" // a principal may not see or apply periods
	EntryErasureBegun     EntryKind = "erasure.begun"     // removal of a person's data began
	EntryErasureDone      EntryKind = "erasure.done"      // with counts by kind
	EntryErasureRefused   EntryKind = "erasure.refused"   // a principal may not erase

	EntryRecoveryEntered   EntryKind = "recovery.entered"   // the database is an older copy: operations with effects are refused
	EntryRecoveryConfirmed EntryKind = "recovery.confirmed" // a principal confirmed what happened since the copy was made
	EntryRecoveryRefused   EntryKind = "recovery.refused"   // a principal may not end it

	EntryAuthoritySigned  EntryKind = "authority.signed"  // rows that decide authority, written by an earlier release, were signed
	EntryAuthorityChanged EntryKind = "authority.changed" // such a row changed without an entry of another kind

	EntryNodeUnclean EntryKind = "node.unclean" // a host process ended without a clean shutdown
)

// A CallRecord is what the ledger keeps of one call: enough to prove what was
// asked and answered, without the data itself (kernel contracts, 5.8).
type CallRecord struct {
	CallID         string          `json:"call_id"`
	Operation      string          `json:"operation"` // plugin/operation, or what was asked for where nothing of that name exists
	Plugin         string          `json:"plugin"`
	Version        string          `json:"version"`
	PackageDigest  string          `json:"package_digest"`
	Kind           Kind            `json:"kind"`
	Effects        []string        `json:"effects"`
	InputHash      string          `json:"input_hash"`           // sha256 of the canonical payload
	AskedHash      string          `json:"asked_hash,omitempty"` // of what the caller sent, where a hook changed that
	ResultHash     string          `json:"result_hash"`          // sha256 of the canonical result data; "" where there is none
	Status         Status          `json:"status"`
	Error          *ErrorRecord    `json:"error"`
	Metrics        Metrics         `json:"metrics"`
	Nondeterminism *Nondeterminism `json:"nondeterminism"`
	Randomness     json.RawMessage `json:"randomness_disclosure,omitzero"` // what an agent says of its own (kernel contracts, 5.2.4)
	Correlation    string          `json:"correlation_id"`
	Workflow       string          `json:"workflow_id"`
	Step           string          `json:"step_id"`
	Principal      string          `json:"principal"`
	Actor          string          `json:"actor"`
	By             string          `json:"by,omitempty"`    // the principal who acted on behalf of Principal, with --as
	Asker          string          `json:"asker,omitempty"` // and who that was known to be
	Origin         Origin          `json:"origin"`
	Parent         string          `json:"parent"`
	Session        string          `json:"session"`
	Agent          string          `json:"agent,omitempty"` // the agent instance that acted
	Key            string          `json:"key"`
	Plan           string          `json:"plan"`
	Labels         []string        `json:"labels"`
	Artifacts      []string        `json:"artifacts,omitempty"` // those that it registered in its session, by id
	Attempt        int64           `json:"attempt"`             // of a claimed call
	Decision       *Decision       `json:"decision"`
	Approval       string          `json:"approval"`  // the approval that let it run
	Isolation      string          `json:"isolation"` // the level the sandbox reached
	Enforcement    Enforcement     `json:"enforcement,omitempty"`
	Cached         bool            `json:"cached"`
	Dry            bool            `json:"dry,omitzero"` // nothing that it asked for was done
	Replays        string          `json:"replays"`      // the call whose answer this one was given
	SchemaVersion  string          `json:"schema_version"`
}

// An Enforcement says what held a call to its decision.
type Enforcement string

// The grades of enforcement, the strongest first. It is [EnforcementNone] where a plugin ran
// without walls: policy decided about the call, and nothing about what the plugin did beside.
const (
	EnforcementStructural Enforcement = "structural" // the host ran it, behind all walls
	EnforcementNetwork    Enforcement = "network"    // the host ran it, and its only way out was the host; some other walls were missing
	EnforcementReported   Enforcement = "reported"   // another program ran it, and said that it heeds the decision
	EnforcementNone       Enforcement = "none"
)

// An ErrorRecord is what the ledger keeps of a failure.
type ErrorRecord struct {
	Code       Code   `json:"code"`
	PluginCode string `json:"plugin_code"`
	Message    string `json:"message"`
}
