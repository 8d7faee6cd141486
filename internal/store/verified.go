package store

import (
	"context"
	"slices"
)

// Verified is a Reader that checks the MACs of the rows it returns: of approvals that are
// closed, sessions, artifacts, conversations, steps of plans, messages, memories, knowledge bases and stored values.
// Transactions and [Authorised] stores read through it.
type Verified struct {
	Reader
	By Verifier
}

// A Verifier has the ledger's key.
type Verifier interface {
	// Verify returns what check says of the key. Where that is an error, and earlier says
	// that the ledger is of a release that did not sign such rows, it returns nil.
	Verify(ctx context.Context, earlier func(context.Context, Reader, *Key) (bool, error), check func(*Key) error) error
}

// sinceRows reports whether a ledger is of a release that signed no kept rows.
var sinceRows = UnsignedRows("messages")

type earlier = func(context.Context, Reader, *Key) (bool, error)

func (v *Verified) proofs(ctx context.Context, earlier earlier, proofs []Proof) error {
	if len(proofs) == 0 {
		return nil
	}
	return v.By.Verify(ctx, earlier, func(key *Key) error { return CheckKept(key, proofs...) })
}

func verifyRows[T Kept](ctx context.Context, v *Verified, earlier earlier, rows []T, err error) ([]T, error) {
	if err == nil {
		err = v.proofs(ctx, earlier, ProofsOf(rows...))
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func verifyRow[T Kept](ctx context.Context, v *Verified, earlier earlier, row *T, err error) (*T, error) {
	if err == nil && row != nil {
		err = v.proofs(ctx, earlier, (*row).Proofs())
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// Session implements [Reader].
func (v *Verified) Session(ctx context.Context, tenant, id string) (*SessionRow, error) {
	row, err := v.Reader.Session(ctx, tenant, id)
	return verifyRow(ctx, v, UnsignedLife, row, err)
}

// Sessions implements [Reader].
func (v *Verified) Sessions(ctx context.Context, f SessionFilter) ([]SessionRow, error) {
	rows, err := v.Reader.Sessions(ctx, f)
	return verifyRows(ctx, v, UnsignedLife, rows, err)
}

// Artifact implements [Reader].
func (v *Verified) Artifact(ctx context.Context, tenant, session, id string) (*ArtifactRow, error) {
	row, err := v.Reader.Artifact(ctx, tenant, session, id)
	return verifyRow(ctx, v, UnsignedLife, row, err)
}

// Artifacts implements [Reader].
func (v *Verified) Artifacts(ctx context.Context, tenant, session string) ([]ArtifactRow, error) {
	rows, err := v.Reader.Artifacts(ctx, tenant, session)
	return verifyRows(ctx, v, UnsignedLife, rows, err)
}

// Messages implements [Reader].
func (v *Verified) Messages(ctx context.Context, tenant, session string, after int64, limit int) ([]MessageRow, error) {
	rows, err := v.Reader.Messages(ctx, tenant, session, after, limit)
	return verifyRows(ctx, v, sinceRows, rows, err)
}

// LastMessages implements [Reader].
func (v *Verified) LastMessages(ctx context.Context, tenant, session string, before int64, limit int) ([]MessageRow, error) {
	rows, err := v.Reader.LastMessages(ctx, tenant, session, before, limit)
	return verifyRows(ctx, v, sinceRows, rows, err)
}

// Conversation implements [Reader].
func (v *Verified) Conversation(ctx context.Context, tenant, session string) (*ConversationRow, error) {
	row, err := v.Reader.Conversation(ctx, tenant, session)
	return verifyRow(ctx, v, UnsignedRows("conversations"), row, err)
}

// Conversations implements [Reader].
func (v *Verified) Conversations(ctx context.Context, f ConversationFilter) ([]ConversationRow, error) {
	rows, err := v.Reader.Conversations(ctx, f)
	return verifyRows(ctx, v, UnsignedRows("conversations"), rows, err)
}

// Steps implements [Reader].
func (v *Verified) Steps(ctx context.Context, tenant, plan string) ([]StepRow, error) {
	rows, err := v.Reader.Steps(ctx, tenant, plan)
	if err == nil {
		err = v.proofs(ctx, UnsignedRows("steps"), StepProofs(rows))
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Memory implements [Reader].
func (v *Verified) Memory(ctx context.Context, tenant, agent, key string) (*MemoryRow, error) {
	row, err := v.Reader.Memory(ctx, tenant, agent, key)
	return verifyRow(ctx, v, sinceRows, row, err)
}

// Memories implements [Reader].
func (v *Verified) Memories(ctx context.Context, tenant, agent string, limit int) ([]MemoryRow, error) {
	rows, err := v.Reader.Memories(ctx, tenant, agent, limit)
	return verifyRows(ctx, v, sinceRows, rows, err)
}

// KB implements [Reader].
func (v *Verified) KB(ctx context.Context, tenant, id string) (*KBRow, error) {
	row, err := v.Reader.KB(ctx, tenant, id)
	return verifyRow(ctx, v, sinceRows, row, err)
}

// KBs implements [Reader].
func (v *Verified) KBs(ctx context.Context, tenant string) ([]KBRow, error) {
	rows, err := v.Reader.KBs(ctx, tenant)
	return verifyRows(ctx, v, sinceRows, rows, err)
}

// Document implements [Reader].
func (v *Verified) Document(ctx context.Context, tenant, kb, id string) (*DocumentRow, error) {
	row, err := v.Reader.Document(ctx, tenant, kb, id)
	return verifyRow(ctx, v, sinceRows, row, err)
}

// DocumentBySource implements [Reader].
func (v *Verified) DocumentBySource(ctx context.Context, tenant, kb, source string) (*DocumentRow, error) {
	row, err := v.Reader.DocumentBySource(ctx, tenant, kb, source)
	return verifyRow(ctx, v, sinceRows, row, err)
}

// Documents implements [Reader].
func (v *Verified) Documents(ctx context.Context, f DocumentFilter) ([]DocumentRow, error) {
	rows, err := v.Reader.Documents(ctx, f)
	return verifyRows(ctx, v, sinceRows, rows, err)
}

// SearchMemories implements [Reader].
func (v *Verified) SearchMemories(ctx context.Context, q MemoryQuery) ([]MemoryRow, error) {
	rows, err := v.Reader.SearchMemories(ctx, q)
	return verifyRows(ctx, v, sinceRows, rows, err)
}

// SearchChunks implements [Reader].
func (v *Verified) SearchChunks(ctx context.Context, q ChunkQuery) ([]ChunkHit, error) {
	rows, err := v.Reader.SearchChunks(ctx, q)
	return verifyRows(ctx, v, sinceRows, rows, err)
}

// Hits implements [Reader].
func (v *Verified) Hits(ctx context.Context, tenant string, of []VectorRow) ([]ChunkHit, error) {
	rows, err := v.Reader.Hits(ctx, tenant, of)
	return verifyRows(ctx, v, sinceRows, rows, err)
}

// KV implements [Reader].
func (v *Verified) KV(ctx context.Context, k KVKey) (*KVRow, error) {
	row, err := v.Reader.KV(ctx, k)
	return verifyRow(ctx, v, sinceRows, row, err)
}

// Chunks implements [Reader].
func (v *Verified) Chunks(ctx context.Context, tenant, kb, document string) ([]ChunkRow, error) {
	rows, err := v.Reader.Chunks(ctx, tenant, kb, document)
	if err == nil {
		err = v.proofs(ctx, sinceRows, PassageProofs(tenant, kb, document, rows))
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// closed checks approvals that take no answer any more.
func (v *Verified) closed(ctx context.Context, rows ...ApprovalRow) error {
	if !slices.ContainsFunc(rows, func(row ApprovalRow) bool { return row.State.Closed() }) {
		return nil
	}
	return v.By.Verify(ctx, UnsignedLife, func(key *Key) error { return CheckClosed(key, rows...) })
}

// Approval implements [Reader].
func (v *Verified) Approval(ctx context.Context, tenant, id string) (*ApprovalRow, error) {
	row, err := v.Reader.Approval(ctx, tenant, id)
	if err != nil || row == nil {
		return nil, err
	}
	return row, v.closed(ctx, *row)
}

// ApprovalByToken implements [Reader].
func (v *Verified) ApprovalByToken(ctx context.Context, tenant, tokenHash string) (*ApprovalRow, error) {
	row, err := v.Reader.ApprovalByToken(ctx, tenant, tokenHash)
	if err != nil || row == nil {
		return nil, err
	}
	return row, v.closed(ctx, *row)
}

// Approvals implements [Reader].
func (v *Verified) Approvals(ctx context.Context, f ApprovalFilter) ([]ApprovalRow, error) {
	rows, err := v.Reader.Approvals(ctx, f)
	if err != nil {
		return nil, err
	}
	return rows, v.closed(ctx, rows...)
}

// PassageProofs returns what the passages of a document are held against.
func PassageProofs(tenant, kb, document string, rows []ChunkRow) []Proof {
	proofs := make([]Proof, len(rows))
	for i := range rows {
		proofs[i] = rows[i].ProofIn(tenant, kb, document)
	}
	return proofs
}
