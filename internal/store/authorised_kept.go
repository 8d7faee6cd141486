package store

import "context"

// kept returns rows that bear a MAC each, where those hold.
func (r *authorisedReader) kept(ctx context.Context, proofs []Proof) error {
	if len(proofs) == 0 {
		return nil
	}
	return r.signed(ctx, UnsignedRows(proofs[0].Table), func(key *Key) error { return key.CheckKept(proofs...) })
}

func keptRows[T Kept](ctx context.Context, r *authorisedReader, rows []T, err error) ([]T, error) {
	if err == nil {
		err = r.kept(ctx, ProofsOf(rows...))
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func keptRow[T Kept](ctx context.Context, r *authorisedReader, row *T, err error) (*T, error) {
	if err == nil && row != nil {
		err = r.kept(ctx, (*row).Proofs())
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// Messages implements [Reader].
func (r *authorisedReader) Messages(ctx context.Context, tenant, session string, after int64, limit int) ([]MessageRow, error) {
	got, err := r.Reader.Messages(ctx, tenant, session, after, limit)
	return keptRows(ctx, r, got, err)
}

// Messages implements [Reader].
func (s *authorised) Messages(ctx context.Context, tenant, session string, after int64, limit int) ([]MessageRow, error) {
	return s.alone().Messages(ctx, tenant, session, after, limit)
}

// LastMessages implements [Reader].
func (r *authorisedReader) LastMessages(ctx context.Context, tenant, session string, before int64, limit int) ([]MessageRow, error) {
	got, err := r.Reader.LastMessages(ctx, tenant, session, before, limit)
	return keptRows(ctx, r, got, err)
}

// LastMessages implements [Reader].
func (s *authorised) LastMessages(ctx context.Context, tenant, session string, before int64, limit int) ([]MessageRow, error) {
	return s.alone().LastMessages(ctx, tenant, session, before, limit)
}

// Conversation implements [Reader].
func (r *authorisedReader) Conversation(ctx context.Context, tenant, session string) (*ConversationRow, error) {
	got, err := r.Reader.Conversation(ctx, tenant, session)
	return keptRow(ctx, r, got, err)
}

// Conversation implements [Reader].
func (s *authorised) Conversation(ctx context.Context, tenant, session string) (*ConversationRow, error) {
	return s.alone().Conversation(ctx, tenant, session)
}

// Conversations implements [Reader].
func (r *authorisedReader) Conversations(ctx context.Context, f ConversationFilter) ([]ConversationRow, error) {
	got, err := r.Reader.Conversations(ctx, f)
	return keptRows(ctx, r, got, err)
}

// Conversations implements [Reader].
func (s *authorised) Conversations(ctx context.Context, f ConversationFilter) ([]ConversationRow, error) {
	return s.alone().Conversations(ctx, f)
}

// Steps implements [Reader].
func (r *authorisedReader) Steps(ctx context.Context, tenant, plan string) ([]StepRow, error) {
	rows, err := r.Reader.Steps(ctx, tenant, plan)
	if err == nil {
		err = r.kept(ctx, StepProofs(rows))
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Steps implements [Reader].
func (s *authorised) Steps(ctx context.Context, tenant, plan string) ([]StepRow, error) {
	return s.alone().Steps(ctx, tenant, plan)
}

// Memory implements [Reader].
func (r *authorisedReader) Memory(ctx context.Context, tenant, agent, key string) (*MemoryRow, error) {
	got, err := r.Reader.Memory(ctx, tenant, agent, key)
	return keptRow(ctx, r, got, err)
}

// Memory implements [Reader].
func (s *authorised) Memory(ctx context.Context, tenant, agent, key string) (*MemoryRow, error) {
	return s.alone().Memory(ctx, tenant, agent, key)
}

// Memories implements [Reader].
func (r *authorisedReader) Memories(ctx context.Context, tenant, agent string, limit int) ([]MemoryRow, error) {
	got, err := r.Reader.Memories(ctx, tenant, agent, limit)
	return keptRows(ctx, r, got, err)
}

// Memories implements [Reader].
func (s *authorised) Memories(ctx context.Context, tenant, agent string, limit int) ([]MemoryRow, error) {
	return s.alone().Memories(ctx, tenant, agent, limit)
}

// KB implements [Reader].
func (r *authorisedReader) KB(ctx context.Context, tenant, id string) (*KBRow, error) {
	got, err := r.Reader.KB(ctx, tenant, id)
	return keptRow(ctx, r, got, err)
}

// KB implements [Reader].
func (s *authorised) KB(ctx context.Context, tenant, id string) (*KBRow, error) {
	return s.alone().KB(ctx, tenant, id)
}

// KBs implements [Reader].
func (r *authorisedReader) KBs(ctx context.Context, tenant string) ([]KBRow, error) {
	got, err := r.Reader.KBs(ctx, tenant)
	return keptRows(ctx, r, got, err)
}

// KBs implements [Reader].
func (s *authorised) KBs(ctx context.Context, tenant string) ([]KBRow, error) {
	return s.alone().KBs(ctx, tenant)
}

// Document implements [Reader].
func (r *authorisedReader) Document(ctx context.Context, tenant, kb, id string) (*DocumentRow, error) {
	got, err := r.Reader.Document(ctx, tenant, kb, id)
	return keptRow(ctx, r, got, err)
}

// Document implements [Reader].
func (s *authorised) Document(ctx context.Context, tenant, kb, id string) (*DocumentRow, error) {
	return s.alone().Document(ctx, tenant, kb, id)
}

// DocumentBySource implements [Reader].
func (r *authorisedReader) DocumentBySource(ctx context.Context, tenant, kb, source string) (*DocumentRow, error) {
	got, err := r.Reader.DocumentBySource(ctx, tenant, kb, source)
	return keptRow(ctx, r, got, err)
}

// DocumentBySource implements [Reader].
func (s *authorised) DocumentBySource(ctx context.Context, tenant, kb, source string) (*DocumentRow, error) {
	return s.alone().DocumentBySource(ctx, tenant, kb, source)
}

// Documents implements [Reader].
func (r *authorisedReader) Documents(ctx context.Context, f DocumentFilter) ([]DocumentRow, error) {
	got, err := r.Reader.Documents(ctx, f)
	return keptRows(ctx, r, got, err)
}

// Documents implements [Reader].
func (s *authorised) Documents(ctx context.Context, f DocumentFilter) ([]DocumentRow, error) {
	return s.alone().Documents(ctx, f)
}

// SearchChunks implements [Reader].
func (r *authorisedReader) SearchChunks(ctx context.Context, q ChunkQuery) ([]ChunkHit, error) {
	got, err := r.Reader.SearchChunks(ctx, q)
	return keptRows(ctx, r, got, err)
}

// SearchChunks implements [Reader].
func (s *authorised) SearchChunks(ctx context.Context, q ChunkQuery) ([]ChunkHit, error) {
	return s.alone().SearchChunks(ctx, q)
}

// Hits implements [Reader].
func (r *authorisedReader) Hits(ctx context.Context, tenant string, of []VectorRow) ([]ChunkHit, error) {
	got, err := r.Reader.Hits(ctx, tenant, of)
	return keptRows(ctx, r, got, err)
}

// Hits implements [Reader].
func (s *authorised) Hits(ctx context.Context, tenant string, of []VectorRow) ([]ChunkHit, error) {
	return s.alone().Hits(ctx, tenant, of)
}

// KV implements [Reader].
func (r *authorisedReader) KV(ctx context.Context, k KVKey) (*KVRow, error) {
	got, err := r.Reader.KV(ctx, k)
	return keptRow(ctx, r, got, err)
}

// KV implements [Reader].
func (s *authorised) KV(ctx context.Context, k KVKey) (*KVRow, error) {
	return s.alone().KV(ctx, k)
}

// Chunks implements [Reader].
func (r *authorisedReader) Chunks(ctx context.Context, tenant, kb, document string) ([]ChunkRow, error) {
	rows, err := r.Reader.Chunks(ctx, tenant, kb, document)
	if err == nil {
		err = r.kept(ctx, PassageProofs(tenant, kb, document, rows))
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Chunks implements [Reader].
func (s *authorised) Chunks(ctx context.Context, tenant, kb, document string) ([]ChunkRow, error) {
	return s.alone().Chunks(ctx, tenant, kb, document)
}

// PassageProofs returns what the passages of a document are held against.
func PassageProofs(tenant, kb, document string, rows []ChunkRow) []Proof {
	proofs := make([]Proof, len(rows))
	for i := range rows {
		proofs[i] = rows[i].ProofIn(tenant, kb, document)
	}
	return proofs
}
