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
	Principal string          `json:"principal"` // who caused it
	Body      json.RawMessage `json:"body"`      // for call.* and service.*, a [CallRecord]
	Prev      string          `json:"prev"`      // hash of the entry before, in hexadecimal
	Hash      string          `json:"hash"`
}

// An EntryKind is what an entry records.
type EntryKind string

// The kinds of entries.
const (
	EntryCallStarted   EntryKind = "call.started"   // claimed: an effect may follow
	EntryCallSucceeded EntryKind = "call.succeeded" // ran and kept its promises
	EntryCallFailed    EntryKind = "call.failed"    // ran and failed
	EntryCallRefused   EntryKind = "call.refused"   // never reached the plugin
	EntryCallUnknown   EntryKind = "call.unknown"   // an effect may or may not have happened
	EntryCallReplayed  EntryKind = "call.replayed"  // answered with the first answer to its key
	EntryCallPending   EntryKind = "call.pending"   // claimed, and waits for a person
	EntryCallQueued    EntryKind = "call.queued"    // claimed, or given back: it may run on any node
	EntryCallProgress  EntryKind = "call.progress"  // the operator goes on by itself
	EntryCallCancel    EntryKind = "call.cancel"    // cancellation was requested
	EntryCallSettled   EntryKind = "call.settled"   // an unknown outcome was found out, by the operator or by a person

	EntryControlRefused EntryKind = "control.refused" // a principal may not see, stop or settle a call or a plan

	EntryEffectIntent EntryKind = "effect.intent" // about to be sent
	EntryEffectDone   EntryKind = "effect.done"   // answered
	EntryEffectLate   EntryKind = "effect.late"   // answered after its call had ended

	EntryApprovalRequested EntryKind = "approval.requested"
	EntryApprovalApproved  EntryKind = "approval.approved"
	EntryApprovalDenied    EntryKind = "approval.denied"
	EntryApprovalExpired   EntryKind = "approval.expired"
	EntryApprovalVoid      EntryKind = "approval.void"
	EntryApprovalConsumed  EntryKind = "approval.consumed"
	EntryApprovalRefused   EntryKind = "approval.refused" // a principal may not decide it, or no longer

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
	EntryTokenRotated    EntryKind = "token.rotated" // its principal has a secret of their own
	EntryTokenRevoked    EntryKind = "token.revoked"
	EntryTokenRefused    EntryKind = "token.refused" // a principal may not do that with tokens, or a token not be used so
	EntryUserCreated     EntryKind = "user.created"
	EntryUserDisabled    EntryKind = "user.disabled"
	EntryUserEnabled     EntryKind = "user.enabled"
	EntryUserInvited     EntryKind = "user.invited"
	EntryUserLinked      EntryKind = "user.linked"   // an identity is theirs since
	EntryUserUnlinked    EntryKind = "user.unlinked" // an identity signs them in no more
	EntryUserRefused     EntryKind = "user.refused"  // a principal may not do that with users, or an unknown subject signed in
	EntryTenantCreated   EntryKind = "tenant.created"
	EntryTenantDisabled  EntryKind = "tenant.disabled" // no one of it is served since
	EntryTenantEnabled   EntryKind = "tenant.enabled"
	EntryTenantRefused   EntryKind = "tenant.refused" // a principal may not do that with tenants
	EntrySignedIn        EntryKind = "session.signed_in"
	EntrySignedOut       EntryKind = "session.signed_out"
	EntryDeliveryRefused EntryKind = "delivery.refused" // nothing came of an event that was for an adapter

	EntryFeedCreated EntryKind = "feed.created"
	EntryFeedPaused  EntryKind = "feed.paused"
	EntryFeedResumed EntryKind = "feed.resumed"
	EntryFeedDeleted EntryKind = "feed.deleted"
	EntryFeedReset   EntryKind = "feed.reset"   // its cursors were deleted
	EntryFeedChanged EntryKind = "feed.changed" // its times or its input
	EntryFeedRefused EntryKind = "feed.refused" // a principal may not make, see or change it, or a run of it was not begun

	EntrySubscription EntryKind = "subscription.changed" // a principal lets a plugin act for them, or not any more

	EntryAgentCreated  EntryKind = "agent.created"
	EntryAgentChanged  EntryKind = "agent.changed" // what it is, or what it remembers
	EntryAgentStarted  EntryKind = "agent.started"
	EntryAgentStopped  EntryKind = "agent.stopped"
	EntryAgentDeleted  EntryKind = "agent.deleted"
	EntryAgentAssigned EntryKind = "agent.assigned" // a plugin was given to agents, or taken from them
	EntryAgentRefused  EntryKind = "agent.refused"  // a principal may not change, see or talk to one

	EntrySessionCreated EntryKind = "session.created"
	EntrySessionPillar  EntryKind = "session.pillar" // another one was chosen
	EntrySessionClosed  EntryKind = "session.closed"
	EntrySessionResumed EntryKind = "session.resumed"
	EntrySessionDeleted EntryKind = "session.deleted" // with its artifacts
	EntrySessionRefused EntryKind = "session.refused" // a principal may not see or change it

	EntryKBCreated  EntryKind = "kb.created"
	EntryKBDeleted  EntryKind = "kb.deleted"  // with its documents
	EntryKBIngested EntryKind = "kb.ingested" // a person put a document there; what plugins put is an effect of a call
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

	// EntryServiceRefused: a running call asked for a host service, an effect
	// or an address it may not have. Body is a [CallRecord] of that call so far.
	EntryServiceRefused EntryKind = "service.refused"

	// EntryModelCalled: a language model was asked, or would have been but for
	// its budget. Body is a [ModelRecord].
	EntryModelCalled EntryKind = "model.called"

	EntrySecretSet     EntryKind = "secret.set"
	EntrySecretDeleted EntryKind = "secret.deleted"
	EntrySecretRotated EntryKind = "secret.rotated" // all were encrypted again, with other keys
	EntrySecretRefused EntryKind = "secret.refused" // a principal may not change or see them

	// EntryPluginAudit: a plugin put something on record itself.
	EntryPluginAudit EntryKind = "plugin.audit"

	EntryPluginRegistered EntryKind = "plugin.registered"
	EntryPluginEnabled    EntryKind = "plugin.enabled"
	EntryPluginDisabled   EntryKind = "plugin.disabled"
	EntryPluginDeleted    EntryKind = "plugin.deleted"
	EntryPluginApproved   EntryKind = "plugin.approved"
	EntryPluginMapped     EntryKind = "plugin.mapped"  // an administrator's word on what an operation does
	EntryPluginRefused    EntryKind = "plugin.refused" // a principal may not register or switch it

	// EntryPluginQuarantined: its files are no longer those that were registered,
	// or it is not what was approved.
	EntryPluginQuarantined EntryKind = "plugin.quarantined"

	EntryRetentionApplied EntryKind = "retention.applied" // what was removed because its period is over, by kind
	EntryRetentionRefused EntryKind = "retention.refused" // a principal may not see or apply periods
	EntryErasureBegun     EntryKind = "erasure.begun"     // what is kept of a person is being removed
	EntryErasureDone      EntryKind = "erasure.done"      // with how much of what
	EntryErasureRefused   EntryKind = "erasure.refused"   // a principal may not erase

	EntryRecoveryEntered   EntryKind = "recovery.entered"   // the database is an older copy: nothing with effects runs
	EntryRecoveryConfirmed EntryKind = "recovery.confirmed" // a principal confirmed what was done since
	EntryRecoveryRefused   EntryKind = "recovery.refused"   // a principal may not end it

	EntryAuthoritySigned  EntryKind = "authority.signed"  // the rows that decide authority, of a ledger of an earlier release
	EntryAuthorityChanged EntryKind = "authority.changed" // such a row, where nothing else says so

	EntryNodeUnclean EntryKind = "node.unclean" // a host process ended without closing its books
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
