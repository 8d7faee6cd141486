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
// chain's arithmetic, its key and its anchor are here, because verifying a ledger must
// not need the engine that wrote it.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A Store keeps a host's state. All methods are safe for concurrent use.
type Store interface {
	Reader

	// Write runs fn in a transaction and returns once that transaction is
	// durable. fn shares it with the closures of other callers and is run
	// again when one of them fails, so it must not keep anything of an earlier
	// run, must not call Write, and should be quick: it holds up all others.
	//
	// An error from fn, or a panic in it, takes back everything fn did, is
	// returned to this caller, and does not touch the others. If ctx ends
	// before fn is taken into a transaction, fn is not run and the cause is
	// returned; once it is taken, Write waits for the outcome.
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

	// Node returns the id this process has in the nodes table.
	Node() string

	// Close commits what was accepted, takes the node off the books unless it
	// leaves running calls or plans behind, and releases everything. Calls after
	// the first return nil.
	Close() error
}

// A Reader answers questions. A row that does not exist is nil without an error.
type Reader interface {
	// Call returns the call of that id.
	Call(ctx context.Context, tenant, id string) (*CallRow, error)
	// CallByKey returns the call that burnt a key; key is the stored form.
	CallByKey(ctx context.Context, tenant, operation, key string) (*CallRow, error)
	// Calls returns calls, newest first; those that are due by when.
	Calls(ctx context.Context, filter CallFilter) ([]CallRow, error)

	// Body returns the bytes of that hash, nil where there are none or they
	// were erased; a [BodyError] where they have another hash. What [Key.Seal] made of
	// them is returned as it is: it opens only at its place.
	Body(ctx context.Context, tenant, hash string) ([]byte, error)
	// Bodies yields all bodies that are there, of all tenants.
	Bodies(ctx context.Context) iter.Seq2[BodyRow, error]

	// Entry returns one entry by its place.
	Entry(ctx context.Context, chain, seq int64) (*plugin.Entry, error)
	// Entries yields entries one by one, without loading the others, in the
	// order of their chain, and chains one after the other. Newest first they
	// come by time where there are several chains. An error is yielded once
	// and ends the sequence.
	Entries(ctx context.Context, filter EntryFilter) iter.Seq2[plugin.Entry, error]
	// Chains returns the authenticated heads.
	Chains(ctx context.Context) ([]ChainRow, error)

	KeptReader
	ClassReader

	// AuthorityHash returns the hash of the rows of one of [AuthorityTables].
	AuthorityHash(ctx context.Context, table string) (string, error)

	// LiveDigests yields what was kept as the digest of each row of one of
	// [LiveTables] that has not ended.
	LiveDigests(ctx context.Context, table string) iter.Seq2[string, error]
	// CallToRun is Call for who goes on with it: [Authorised] stores hold the row
	// against the ledger first.
	CallToRun(ctx context.Context, tenant, id string) (*CallRow, error)
	// PlanToRun is Plan likewise.
	PlanToRun(ctx context.Context, tenant, id string) (*PlanRow, error)

	// Effects returns the journal of a call, in its order.
	Effects(ctx context.Context, tenant, call string) ([]EffectRow, error)

	// Approval returns the approval of that id.
	Approval(ctx context.Context, tenant, id string) (*ApprovalRow, error)
	// ApprovalByToken returns the approval whose token has that hash.
	ApprovalByToken(ctx context.Context, tenant, tokenHash string) (*ApprovalRow, error)
	// Approvals returns approvals, newest first.
	Approvals(ctx context.Context, filter ApprovalFilter) ([]ApprovalRow, error)

	// Plan returns the plan of that id.
	Plan(ctx context.Context, tenant, id string) (*PlanRow, error)
	// PlanByKey returns the plan that burnt a key.
	PlanByKey(ctx context.Context, tenant, key string) (*PlanRow, error)
	// Plans returns plans, newest first.
	Plans(ctx context.Context, filter PlanFilter) ([]PlanRow, error)
	// Steps returns the steps of a plan, in their order.
	Steps(ctx context.Context, tenant, plan string) ([]StepRow, error)

	// Policies returns the policies that are kept for a tenant, by name.
	Policies(ctx context.Context, tenant string) ([]PolicyRow, error)

	// Identity returns the principal that an account of another system belongs to.
	Identity(ctx context.Context, tenant, provider, externalID string) (*IdentityRow, error)
	// Identities returns all links of a tenant, by provider and external id.
	Identities(ctx context.Context, tenant string) ([]IdentityRow, error)

	// Session returns the session of that id.
	Session(ctx context.Context, tenant, id string) (*SessionRow, error)
	// Sessions returns sessions, newest first.
	Sessions(ctx context.Context, filter SessionFilter) ([]SessionRow, error)
	// Artifact returns the artifact of that id in a session.
	Artifact(ctx context.Context, tenant, session, id string) (*ArtifactRow, error)
	// Artifacts returns the artifacts of a session, in the order of registration.
	Artifacts(ctx context.Context, tenant, session string) ([]ArtifactRow, error)
	// ArtifactData returns the bytes of an artifact that are kept with it, nil
	// where they are elsewhere.
	ArtifactData(ctx context.Context, tenant, session, id string) ([]byte, error)
	// Registered reports whether an artifact of any tenant has these bytes
	// elsewhere.
	Registered(ctx context.Context, sha256 string) (bool, error)
	// ArtifactBytes returns how many bytes the artifacts of a session have, or of
	// all sessions of the tenant where session is empty.
	ArtifactBytes(ctx context.Context, tenant, session string) (int64, error)
	// ArtifactLabels returns the labels of those artifacts of a session that
	// there are, by their ids, and reads nothing else of them.
	ArtifactLabels(ctx context.Context, tenant, session string, ids []string) (map[string][]string, error)

	// KB returns the knowledge base of that id.
	KB(ctx context.Context, tenant, id string) (*KBRow, error)
	// KBs returns the knowledge bases of a tenant, by id.
	KBs(ctx context.Context, tenant string) ([]KBRow, error)
	// CountKB returns how many documents and passages a knowledge base has.
	CountKB(ctx context.Context, tenant, id string) (documents, chunks int64, err error)
	// Document returns a document of a knowledge base, with its text.
	Document(ctx context.Context, tenant, kb, id string) (*DocumentRow, error)
	// DocumentBySource returns what a knowledge base has of a source, without
	// its text.
	DocumentBySource(ctx context.Context, tenant, kb, source string) (*DocumentRow, error)
	// Documents returns documents without their text, by id.
	Documents(ctx context.Context, filter DocumentFilter) ([]DocumentRow, error)
	// Chunks returns the passages of a document, in their order, without terms.
	Chunks(ctx context.Context, tenant, kb, document string) ([]ChunkRow, error)
	// SearchChunks returns the passages that fit best, the best first.
	SearchChunks(ctx context.Context, q ChunkQuery) ([]ChunkHit, error)
	// Vectors yields the embeddings of some knowledge bases by one model.
	Vectors(ctx context.Context, tenant string, kbs []string, model string) iter.Seq2[VectorRow, error]
	// CountVectors returns how many passages of a knowledge base a model has
	// embedded.
	CountVectors(ctx context.Context, tenant, kb, model string) (int64, error)
	// Unembedded returns passages that a model has not embedded.
	Unembedded(ctx context.Context, filter UnembeddedFilter) ([]PassageRow, error)
	// Hits returns the passages of these vectors that are still there, unranked.
	Hits(ctx context.Context, tenant string, of []VectorRow) ([]ChunkHit, error)

	// Schedule returns the schedule of that id.
	Schedule(ctx context.Context, tenant, id string) (*ScheduleRow, error)
	// Schedules returns schedules, newest first; those that are due by when.
	Schedules(ctx context.Context, filter ScheduleFilter) ([]ScheduleRow, error)
	// Ticks returns the times of a schedule that have come.
	Ticks(ctx context.Context, filter TickFilter) ([]TickRow, error)

	// IdentitiesOf returns what links one principal, by provider and external id.
	IdentitiesOf(ctx context.Context, tenant, principalType, principalID string) ([]IdentityRow, error)

	// KV returns what is kept under a key. Whether it has expired is the caller's
	// to judge.
	KV(ctx context.Context, key KVKey) (*KVRow, error)

	// Secret returns a secret as it is kept: encrypted.
	Secret(ctx context.Context, name SecretName) (*SecretRow, error)
	// Secrets returns secrets by tenant and name.
	Secrets(ctx context.Context, filter SecretFilter) ([]SecretRow, error)
	// SecretKeys returns the keys of secrets, the first one first.
	SecretKeys(ctx context.Context) ([]SecretKeyRow, error)

	// Agent returns the agent of that id.
	Agent(ctx context.Context, tenant, id string) (*AgentRow, error)
	// Agents returns the agents of a tenant, or of all, by id.
	Agents(ctx context.Context, tenant string) ([]AgentRow, error)
	// Assignments returns which plugins the agents of a tenant have, by plugin.
	Assignments(ctx context.Context, tenant string) ([]AssignmentRow, error)
	// Conversation returns the conversation that a session is.
	Conversation(ctx context.Context, tenant, session string) (*ConversationRow, error)
	// Conversations returns conversations, newest first.
	Conversations(ctx context.Context, filter ConversationFilter) ([]ConversationRow, error)
	// Messages returns the messages of a conversation after one of them, in
	// their order.
	Messages(ctx context.Context, tenant, session string, after int64, limit int) ([]MessageRow, error)
	// LastMessages returns the messages of a conversation before one of them, the
	// newest first, and the last of all where before is 0. Those that only came in
	// are not among them.
	LastMessages(ctx context.Context, tenant, session string, before int64, limit int) ([]MessageRow, error)
	// Memory returns what an agent remembers under a key.
	Memory(ctx context.Context, tenant, agent, key string) (*MemoryRow, error)
	// Memories returns what an agent remembers, the newest first.
	Memories(ctx context.Context, tenant, agent string, limit int) ([]MemoryRow, error)
	// CountMemories returns how many things an agent remembers.
	CountMemories(ctx context.Context, tenant, agent string) (int64, error)
	// Delivered reports whether something came in at a place already.
	Delivered(ctx context.Context, tenant, place, mark string) (bool, error)
	// Outbox returns the one event for each agent's webhook that is to be sent
	// next: the one with the lowest id. What is due first comes first.
	Outbox(ctx context.Context, filter OutboxFilter) ([]OutboxRow, error)

	// Spent returns what was spent of a budget so far.
	Spent(ctx context.Context, tenant, subject, period string) (int64, error)

	// Packages returns all packages, by digest.
	Packages(ctx context.Context) ([]PackageRow, error)
	// Plugin returns one version of a plugin.
	Plugin(ctx context.Context, name, version string) (*PluginRow, error)
	// Plugins returns all versions of all plugins, by name and then in the
	// order they were registered.
	Plugins(ctx context.Context) ([]PluginRow, error)

	// Nodes returns the processes that are on the books, oldest first.
	Nodes(ctx context.Context) ([]NodeRow, error)
}

// A Tx is what a closure given to [Store.Write] can do. Its reads see the
// closure's own writes, entries excepted, and take no notice of their contexts:
// a transaction of many callers does not end with one of them. It must not be
// used after the closure has returned, nor be used otherwise while one of its
// sequences is being ranged over; the same holds for the Reader of a snapshot.
type Tx interface {
	Reader

	// Append adds an entry to the chain. Chain, Seq, Prev and Hash are given
	// to it at the commit. An entry that cannot be kept as it is fails the
	// closure when it returns.
	Append(e plugin.Entry)

	// SignAuthority signs the rows that decide authority in a ledger of an earlier
	// release, with an entry that says so. Where they are signed it does nothing.
	SignAuthority() error

	// InsertCall adds a call. If its key was seen before, prior is the call
	// that burnt it and nothing is written.
	InsertCall(row CallRow) (prior *CallRow, err error)
	// UpdateCall gives the call at fence the changeable values of next (see
	// [CallRow]) and reports whether fence still held; if not, nothing is
	// written.
	UpdateCall(fence Fence, next CallRow) (won bool, err error)

	// CancelCall records a cancel request on a call that has not ended, and reports whether
	// there was such a call. It needs no fencing token.
	CancelCall(tenant, id string) (found bool, err error)

	// InsertEffect adds an effect to the journal of the call at fence, with the
	// next n, and returns it. If an equal one is there - same call, request and
	// occurrence - that is prior and nothing is written. won reports whether
	// the fence held; if not, nothing is written and there is no prior.
	InsertEffect(fence Fence, row EffectRow) (inserted, prior *EffectRow, won bool, err error)
	// UpdateEffect gives effect row.N of the call at fence row's attempt, state,
	// answer and time, and reports whether fence still held.
	UpdateEffect(fence Fence, row EffectRow) (won bool, err error)
	// LateEffect keeps the answer to an effect that is still an intent of the row's
	// attempt although that attempt is over, whatever became of the call, and
	// reports whether there was such an effect.
	LateEffect(row EffectRow) (found bool, err error)

	// InsertApproval adds an approval.
	InsertApproval(row ApprovalRow) error
	// UpdateApproval gives the approval that is in state from the changeable
	// values of next (see [ApprovalRow]) and reports whether it was in it.
	UpdateApproval(from ApprovalState, next ApprovalRow) (won bool, err error)

	// InsertPlan adds a plan with its steps. If its key was seen before, prior is
	// the plan that burnt it and nothing is written.
	InsertPlan(row PlanRow, steps []StepRow) (prior *PlanRow, err error)
	// UpdatePlan gives the plan at fence the changeable values of next (see
	// [PlanRow]) and reports whether fence still held.
	UpdatePlan(fence PlanFence, next PlanRow) (won bool, err error)

	// PutPolicy adds a text of policies or replaces it.
	PutPolicy(row PolicyRow) error
	// DeletePolicy reports whether there was such a text to delete.
	DeletePolicy(tenant, name string) (found bool, err error)

	// PutIdentity links an account of another system, or changes the link.
	PutIdentity(row IdentityRow) error
	// DeleteIdentity reports whether there was such a link to delete.
	DeleteIdentity(tenant, provider, externalID string) (found bool, err error)

	// InsertSession adds a session.
	InsertSession(row SessionRow) error
	// SetSessionState moves a session that is in state from and reports whether
	// it was.
	SetSessionState(tenant, id string, from, to SessionState, at time.Time) (won bool, err error)
	// SetSessionPillar reports whether there was such a session to change.
	SetSessionPillar(tenant, id, pillar string, at time.Time) (found bool, err error)
	// DeleteSession deletes a session with its artifacts and returns the hashes
	// of those whose bytes are elsewhere, which others may have too.
	DeleteSession(tenant, id string) (hashes []string, found bool, err error)

	// InsertArtifact adds an artifact to a session that is open, with the next
	// n and its labels to those of the session, and returns it. Its bytes are
	// kept with it where data is not nil, and row.Inline says nothing. If row is not
	// Promised and an equal one is there - same bytes, name, type, source and labels - that is prior and
	// nothing is written. open reports whether there was such a session; if
	// not, nothing is written and there is no prior.
	InsertArtifact(row ArtifactRow, data []byte) (inserted, prior *ArtifactRow, open bool, err error)

	// InsertAgent adds an agent, and reports whether its id was free.
	InsertAgent(row AgentRow) (fresh bool, err error)
	// UpdateAgent gives an agent the changeable values of row (see [AgentRow])
	// and reports whether there was such an agent.
	UpdateAgent(row AgentRow) (found bool, err error)
	// DeleteAgent deletes an agent with all that is its own, but for what was
	// said with it, and reports whether there was such an agent.
	DeleteAgent(tenant, id string) (found bool, err error)
	// PutAssignment says whether an agent has a plugin, or changes that.
	PutAssignment(row AssignmentRow) error
	// DeleteAssignment reports whether there was such an assignment to delete.
	DeleteAssignment(tenant, subject, plugin string) (found bool, err error)

	// InsertConversation adds a conversation.
	InsertConversation(row ConversationRow) error
	// TakeTurn gives the turn in an open conversation to a lease, if the turn is free or
	// its lease has expired, and reports whether it did.
	TakeTurn(tenant, session, lease string, now, until time.Time) (won bool, err error)
	// KeepTurn lengthens a lease and reports whether it was still held.
	KeepTurn(tenant, session, lease string, until time.Time) (held bool, err error)
	// EndTurn gives a turn back and reports whether the lease was still held.
	EndTurn(tenant, session, lease string, now time.Time) (held bool, err error)
	// CloseConversation reports whether there was such an open one.
	CloseConversation(tenant, session string, now time.Time) (found bool, err error)
	// CloseIdle is CloseConversation for one in which no message waits, no lease holds the
	// turn, and nothing happened since.
	CloseIdle(tenant, session string, since, now time.Time) (found bool, err error)
	// InsertMessage adds a message with the next n, and returns that; 0 where
	// there is no such conversation, or it is closed and the message came in.
	InsertMessage(row MessageRow) (n int64, err error)

	// Handled says that the messages that came in up to n have their turns behind
	// them.
	Handled(tenant, session string, n int64) error

	// PutMemory has an agent remember something, in place of what it had under
	// that key.
	PutMemory(row MemoryRow) error
	// DeleteMemory reports whether there was something to forget.
	DeleteMemory(tenant, agent, key string) (found bool, err error)

	// InsertDelivery takes note that something came in at a place, and reports
	// whether it is the first time.
	InsertDelivery(tenant, place, mark string, at time.Time) (fresh bool, err error)
	// InsertOutbox adds an event for a webhook, unless that many of the agent
	// wait for it already, and returns how many did.
	InsertOutbox(row OutboxRow, most int) (waiting int, err error)
	// UpdateOutbox gives an event the changeable values of row if it still has
	// that attempt, and reports whether it had.
	UpdateOutbox(attempt int64, row OutboxRow) (won bool, err error)
	// DeleteOutbox reports whether there was such an event.
	DeleteOutbox(tenant, id string) (found bool, err error)

	// InsertKB adds a knowledge base, and reports whether its id was free.
	InsertKB(row KBRow) (fresh bool, err error)
	// DeleteKB deletes a knowledge base that is empty, and reports whether there
	// was such a one.
	DeleteKB(tenant, id string) (found bool, err error)
	// PutDocument adds a document with its passages, or puts them in the place
	// of those of the same id, and reports whether there is such a knowledge
	// base; if not, nothing is written.
	PutDocument(row DocumentRow, chunks []ChunkRow) (found bool, err error)
	// PutVector gives a passage its embedding by a model, and reports whether
	// the passage is there and still has that text; if not, nothing is written.
	PutVector(tenant, kb string, of PassageRow, model string, embedding []byte) (found bool, err error)
	// UpdateDocument changes what is known about a document, not its text.
	UpdateDocument(row DocumentRow) (found bool, err error)
	// DeleteDocument deletes a document with its passages.
	DeleteDocument(tenant, kb, id string) (found bool, err error)

	// InsertSchedule adds a schedule.
	InsertSchedule(row ScheduleRow) error
	// UpdateSchedule gives the schedule that has row's revision the changeable
	// values of row (see [ScheduleRow]) and the next revision, and reports
	// whether it had it; if not, nothing is written.
	UpdateSchedule(row ScheduleRow) (won bool, err error)
	// DeleteSchedule deletes a schedule with its ticks and reports whether there
	// was one.
	DeleteSchedule(tenant, id string) (found bool, err error)
	// InsertTick adds a time of a schedule and reports whether it was not there.
	InsertTick(row TickRow) (inserted bool, err error)
	// UpdateTick gives the tick whose outcome is from the changeable values of
	// row (see [TickRow]) and reports whether it was.
	UpdateTick(from TickOutcome, row TickRow) (won bool, err error)
	// DeleteTicks forgets the times of a schedule before a time that are not due.
	DeleteTicks(tenant, schedule string, before time.Time) error

	// PutKV keeps a value under a key, in place of an earlier one.
	PutKV(row KVRow) error
	// DeleteKV reports whether there was something under the key.
	DeleteKV(key KVKey) (found bool, err error)
	// DeleteKVs deletes everything whose key begins as that of begin, and is the
	// same as it otherwise, and reports whether there was anything.
	DeleteKVs(begin KVKey) (found bool, err error)

	// PutSecret adds a secret or replaces it, if the key that it is encrypted with
	// is the last one there is, and reports whether it is; if not, nothing is
	// written.
	PutSecret(row SecretRow) (current bool, err error)
	// DeleteSecret reports whether there was such a secret to delete.
	DeleteSecret(name SecretName) (found bool, err error)
	// InsertSecretKey adds a key, unless there is one of its number.
	InsertSecretKey(row SecretKeyRow) (added bool, err error)
	// RewrapSecretKey encrypts key n with another one from outside, and reports
	// whether from was what it was encrypted with; if not, nothing is written.
	RewrapSecretKey(n int64, from, master string, wrapped []byte) (won bool, err error)
	// DeleteSecretKeys deletes the keys before one that no secret is encrypted
	// with any more, and reports whether there were any.
	DeleteSecretKeys(before int64) (found bool, err error)

	// Spend adds delta to what was spent of a budget, if the total stays within
	// limit, and returns the total as it is then. A negative delta gives back,
	// whatever the limit, and never more than was spent.
	Spend(tenant, subject, period string, delta, limit int64) (total int64, ok bool, err error)

	// Claim gives name to value, unless it was given before, and returns what
	// has it.
	Claim(name, value string) (holder string, err error)

	// PutBody keeps data until expires, or for good where that is zero, and
	// returns its hash. The same bytes are kept once, for the longest time
	// that was asked.
	PutBody(tenant string, data []byte, expires time.Time) (hash string, err error)
	// PutSealedBody keeps in the place of the bytes of a hash what they became by
	// [Key.Seal], also where they are there.
	PutSealedBody(tenant, hash string, sealed []byte, expires time.Time) error

	// PutPackage adds a package or replaces what is known of it.
	PutPackage(row PackageRow) error
	// PutPlugin adds a version of a plugin or replaces it.
	PutPlugin(row PluginRow) error
	// SetPluginState reports whether there was such a version to change.
	SetPluginState(name, version string, state PluginState) (found bool, err error)
	// DeletePlugin reports whether there was such a version to delete.
	DeletePlugin(name, version string) (found bool, err error)

	// InsertNode puts a process on the books.
	InsertNode(row NodeRow) error
	// DeleteNode takes it off and reports whether it was there.
	DeleteNode(id string) (found bool, err error)
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

	// ErrTampered means the chain's head is not what this host last signed. Appending would
	// sign a forged history.
	ErrTampered = errors.New("the ledger was changed from outside; run mortise ledger verify")
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
