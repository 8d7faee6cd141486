package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A TextIndex is how an engine finds passages by their words.
type TextIndex struct {
	Add  string // enters the chunk (tenant, kb, document, n) under its terms, which come first
	Drop string // takes out the chunks of (tenant, kb, document), before they are deleted; "" where they go by themselves

	// Best is a SELECT of the passages that fit a query best, no more than its
	// limit, as kb_id, document_id, n and score: the more the better.
	Best func(q store.ChunkQuery) (query string, args []any)

	AddMemory    string // enters the memory (tenant, agent, key) under its terms, which come first
	DropMemory   string // takes out the memory of (tenant, agent, key), before it is written over or deleted; "" where it goes by itself
	DropMemories string // those of (tenant, agent), likewise

	// BestMemories is a SELECT of the memories that fit a query best, no more than its
	// limit, as key and score: the more the better.
	BestMemories func(q store.MemoryQuery) (query string, args []any)
}

const kbColumns = `tenant, id, name, description, labels, created_by, created_at, mac`

const documentColumns = `tenant, kb_id, id, source_id, source_type, object_id, title, filename, mime, url, content_hash, words, characters, chunks,
	extraction, attributes, labels, principal, call_id, created_at, updated_at, text_hash, mac`

const putDocument = `INSERT INTO kb_documents (` + documentColumns + `, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, kb_id, id) DO UPDATE SET source_id = excluded.source_id, source_type = excluded.source_type, object_id = excluded.object_id,
		title = excluded.title, filename = excluded.filename, mime = excluded.mime, url = excluded.url, content_hash = excluded.content_hash,
		words = excluded.words, characters = excluded.characters, chunks = excluded.chunks, extraction = excluded.extraction,
		attributes = excluded.attributes, principal = excluded.principal, call_id = excluded.call_id,
		updated_at = excluded.updated_at, text_hash = excluded.text_hash, mac = excluded.mac, text = excluded.text RETURNING labels`

const updateDocument = `UPDATE kb_documents SET filename = ?, url = ?, extraction = ?, attributes = ?, call_id = ?, updated_at = ?, labels = ?, mac = ?
	WHERE tenant = ? AND kb_id = ? AND id = ?`

const labelDocument = `UPDATE kb_documents SET labels = ?, mac = ? WHERE tenant = ? AND kb_id = ? AND id = ?`

const insertChunk = `INSERT INTO kb_chunks (tenant, kb_id, document_id, n, start, text, embedding, model, mac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

// KB implements [store.Reader].
func (r *reader) KB(ctx context.Context, tenant, id string) (*store.KBRow, error) {
	q := selectFrom(kbColumns, "kbs")
	q.where("tenant = ?", tenant)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanKB))
}

// KBs implements [store.Reader].
func (r *reader) KBs(ctx context.Context, tenant string) ([]store.KBRow, error) {
	q := selectFrom(kbColumns, "kbs")
	q.where("tenant = ?", tenant)
	q.orderBy("id")
	return all(rows(ctx, r, q, scanKB))
}

// CountKB implements [store.Reader].
func (r *reader) CountKB(ctx context.Context, tenant, id string) (documents, chunks int64, err error) {
	q := selectFrom("count(*), CAST(COALESCE(sum(chunks), 0) AS BIGINT)", "kb_documents")
	q.where("tenant = ?", tenant)
	q.where("kb_id = ?", id)
	_, err = one(rows(ctx, r, q, func(rows *record, _ *struct{}) error { return rows.Scan(&documents, &chunks) }))
	return documents, chunks, err
}

// Document implements [store.Reader].
func (r *reader) Document(ctx context.Context, tenant, kb, id string) (*store.DocumentRow, error) {
	q := selectFrom(documentColumns+", text", "kb_documents")
	q.where("tenant = ?", tenant)
	q.where("kb_id = ?", kb)
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanWhole))
}

// DocumentBySource implements [store.Reader].
func (r *reader) DocumentBySource(ctx context.Context, tenant, kb, source string) (*store.DocumentRow, error) {
	q := selectFrom(documentColumns, "kb_documents")
	q.where("tenant = ?", tenant)
	q.where("kb_id = ?", kb)
	q.where("source_id = ?", source)
	return one(rows(ctx, r, q, func(rows *record, d *store.DocumentRow) error { return scanDocument(rows, d) }))
}

// Documents implements [store.Reader].
func (r *reader) Documents(ctx context.Context, f store.DocumentFilter) ([]store.DocumentRow, error) {
	q := selectFrom(documentColumns, "kb_documents")
	q.where("tenant = ?", f.Tenant)
	q.equal("kb_id", f.KB)
	q.equal("id", f.ID)
	q.equal("source_type", f.SourceType)
	q.equal("object_id", f.ObjectID)
	if f.After != "" {
		q.where("id > ?", f.After)
	}
	q.orderBy("id")
	q.limit(f.Limit)
	return all(rows(ctx, r, q, func(rows *record, d *store.DocumentRow) error { return scanDocument(rows, d) }))
}

// Chunks implements [store.Reader].
func (r *reader) Chunks(ctx context.Context, tenant, kb, document string) ([]store.ChunkRow, error) {
	q := selectFrom("n, start, text, embedding, model, mac", "kb_chunks")
	q.where("tenant = ?", tenant)
	q.where("kb_id = ?", kb)
	q.where("document_id = ?", document)
	q.orderBy("n")
	return all(rows(ctx, r, q, func(rows *record, c *store.ChunkRow) error {
		var embedding sql.Null[[]byte]
		err := rows.Scan(&c.N, &c.Start, &c.Text, &embedding, &c.Model, &c.MAC)
		c.Embedding = embedding.V
		return err
	}))
}

// A hit is read with all of its document that is signed.
var hitColumns = "d." + strings.Join(strings.FieldsFunc(documentColumns, func(c rune) bool { return c == ',' || unicode.IsSpace(c) }), ", d.") + ", c.n, c.start, c.text, c.mac"

// SearchChunks implements [store.Reader].
func (r *reader) SearchChunks(ctx context.Context, cq store.ChunkQuery) ([]store.ChunkHit, error) {
	if len(cq.Terms) == 0 || len(cq.KBs) == 0 {
		return nil, nil
	}
	best, args := r.text.Best(cq)
	q := selectFrom(hitColumns+", best.score", "("+best+`) best
		JOIN kb_chunks c ON c.kb_id = best.kb_id AND c.document_id = best.document_id AND c.n = best.n
		JOIN kb_documents d ON d.tenant = c.tenant AND d.kb_id = c.kb_id AND d.id = c.document_id`)
	q.args = append(q.args, args...)
	q.where("c.tenant = ?", cq.Tenant)
	q.orderBy("best.score DESC, c.kb_id, c.document_id, c.n")
	return all(rows(ctx, r, q, func(rows *record, h *store.ChunkHit) error { return scanHit(rows, h, &h.Score) }))
}

// Hits implements [store.Reader].
func (r *reader) Hits(ctx context.Context, tenant string, of []store.VectorRow) ([]store.ChunkHit, error) {
	var hits []store.ChunkHit
	for _, v := range of {
		q := selectFrom(hitColumns, "kb_chunks c JOIN kb_documents d ON d.tenant = c.tenant AND d.kb_id = c.kb_id AND d.id = c.document_id")
		q.where("c.tenant = ?", tenant)
		q.where("c.kb_id = ?", v.KB)
		q.where("c.document_id = ?", v.DocumentID)
		q.where("c.n = ?", v.N)
		hit, err := one(rows(ctx, r, q, func(rows *record, h *store.ChunkHit) error { return scanHit(rows, h) }))
		if err != nil {
			return nil, err
		}
		if hit != nil {
			hits = append(hits, *hit)
		}
	}
	return hits, nil
}

// Vectors implements [store.Reader].
func (r *reader) Vectors(ctx context.Context, tenant string, kbs []string, model string) iter.Seq2[store.VectorRow, error] {
	q := selectFrom("kb_id, document_id, n, embedding", "kb_chunks")
	q.where("tenant = ?", tenant)
	q.oneOf("kb_id", kbs)
	q.where("model = ?", model)
	q.where("embedding IS NOT NULL")
	return rows(ctx, r, q, func(rows *record, v *store.VectorRow) error {
		return rows.Scan(&v.KB, &v.DocumentID, &v.N, &v.Embedding)
	})
}

// CountVectors implements [store.Reader].
func (r *reader) CountVectors(ctx context.Context, tenant, kb, model string) (n int64, err error) {
	q := selectFrom("count(*)", "kb_chunks")
	q.where("tenant = ?", tenant)
	q.where("kb_id = ?", kb)
	q.where("model = ?", model)
	q.where("embedding IS NOT NULL")
	_, err = one(rows(ctx, r, q, func(rows *record, _ *struct{}) error { return rows.Scan(&n) }))
	return n, err
}

// Unembedded implements [store.Reader].
func (r *reader) Unembedded(ctx context.Context, f store.UnembeddedFilter) ([]store.PassageRow, error) {
	q := selectFrom("document_id, n, text", "kb_chunks")
	q.where("tenant = ?", f.Tenant)
	q.where("kb_id = ?", f.KB)
	q.where("(embedding IS NULL OR model <> ?)", f.Model)
	if f.Document != "" {
		q.where("(document_id, n) > (?, ?)", f.Document, f.N)
	}
	q.orderBy("document_id, n")
	q.limit(f.Limit)
	return all(rows(ctx, r, q, func(rows *record, p *store.PassageRow) error { return rows.Scan(&p.DocumentID, &p.N, &p.Text) }))
}

// oneOf adds the condition that a column has one of the values.
func (q *query) oneOf(column string, values []string) {
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = value
	}
	q.where(column+" IN ("+strings.TrimPrefix(strings.Repeat(", ?", len(values)), ", ")+")", args...)
}

// InsertKB implements [store.Tx].
func (t *tx) InsertKB(r store.KBRow) (fresh bool, err error) {
	labels, err := t.array(r.Labels)
	if err != nil {
		return false, err
	}
	key, err := t.signer()
	if err != nil {
		return false, t.fail(err)
	}
	return t.Exec(`INSERT INTO kbs (`+kbColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING`,
		r.Tenant, r.ID, r.Name, r.Description, labels, r.CreatedBy, micros(r.CreatedAt), key.SignKept(r.Digest()))
}

// DeleteKB implements [store.Tx].
func (t *tx) DeleteKB(tenant, id string) (found bool, err error) {
	return t.Exec(`DELETE FROM kbs WHERE tenant = ? AND id = ? AND NOT EXISTS (SELECT 1 FROM kb_documents WHERE tenant = ? AND kb_id = ?)`, tenant, id, tenant, id)
}

// PutDocument implements [store.Tx].
func (t *tx) PutDocument(r store.DocumentRow, chunks []store.ChunkRow) (found bool, err error) {
	labels, err := t.array(r.Labels)
	if err != nil {
		return false, err
	}
	key, err := t.signer()
	if err != nil {
		return false, t.fail(err)
	}
	r.TextHash, r.Chunks = store.TextHash(r.Text), int64(len(chunks))
	// This holds the knowledge base until the end of the transaction.
	if found, err = t.Exec(`UPDATE kbs SET name = name WHERE tenant = ? AND id = ?`, r.Tenant, r.KB); err != nil || !found {
		return false, err
	}
	if err := t.dropChunks(r.Tenant, r.KB, r.ID); err != nil {
		return false, err
	}
	var had string
	if _, err := t.Row([]any{&had}, putDocument, r.Tenant, r.KB, r.ID, r.SourceID, r.SourceType, r.ObjectID, r.Title, r.Filename, r.MIME, r.URL, r.ContentHash,
		r.Words, r.Characters, r.Chunks, r.Extraction, r.Attributes, labels, r.Principal, r.CallID, micros(r.CreatedAt), micros(r.UpdatedAt), r.TextHash, key.SignKept(r.Digest()), r.Text); err != nil {
		return false, err
	}
	if err := t.grow(&r.Labels, labels, had, func() string { return key.SignKept(r.Digest()) }, labelDocument, r.Tenant, r.KB, r.ID); err != nil {
		return false, err
	}
	for _, c := range chunks {
		var embedding any
		if c.Embedding != nil {
			embedding = c.Embedding
		}
		if _, err := t.Exec(insertChunk, r.Tenant, r.KB, r.ID, c.N, c.Start, c.Text, embedding, c.Model, key.SignKept(c.DigestIn(r.Tenant, r.KB, r.ID))); err != nil {
			return false, err
		}
		if _, err := t.Exec(t.reader.text.Add, c.Terms, r.Tenant, r.KB, r.ID, c.N); err != nil {
			return false, err
		}
	}
	return true, nil
}

// PutVector implements [store.Tx].
func (t *tx) PutVector(tenant, kb string, of store.PassageRow, model string, embedding []byte) (found bool, err error) {
	return t.Exec(`UPDATE kb_chunks SET embedding = ?, model = ? WHERE tenant = ? AND kb_id = ? AND document_id = ? AND n = ? AND text = ?`,
		embedding, model, tenant, kb, of.DocumentID, of.N, of.Text)
}

// UpdateDocument implements [store.Tx].
func (t *tx) UpdateDocument(r store.DocumentRow) (found bool, err error) {
	q := selectFrom(documentColumns, "kb_documents")
	q.where("tenant = ?", r.Tenant)
	q.where("kb_id = ?", r.KB)
	q.where("id = ?", r.ID)
	q.text.WriteString(t.writer.engine.Keep)
	had, err := one(rows(context.Background(), &t.reader, q, func(rows *record, d *store.DocumentRow) error { return scanDocument(rows, d) }))
	if had == nil || err != nil {
		return false, err
	}
	if err := t.Verify(context.Background(), store.Unsigned, func(key *store.Key) error { return store.CheckKept(key, had.Proofs()...) }); err != nil {
		return false, err
	}
	key, err := t.signer()
	if err != nil {
		return false, t.fail(err)
	}
	had.Filename, had.URL, had.Extraction, had.Attributes, had.CallID, had.UpdatedAt = r.Filename, r.URL, r.Extraction, r.Attributes, r.CallID, r.UpdatedAt
	had.Labels = plugin.Labels(had.Labels, r.Labels)
	labels, err := t.array(had.Labels)
	if err != nil {
		return false, err
	}
	return t.Exec(updateDocument, r.Filename, r.URL, r.Extraction, r.Attributes, r.CallID, micros(r.UpdatedAt), labels, key.SignKept(had.Digest()), r.Tenant, r.KB, r.ID)
}

// DeleteDocument implements [store.Tx].
func (t *tx) DeleteDocument(tenant, kb, id string) (found bool, err error) {
	if err := t.dropChunks(tenant, kb, id); err != nil {
		return false, err
	}
	return t.Exec(`DELETE FROM kb_documents WHERE tenant = ? AND kb_id = ? AND id = ?`, tenant, kb, id)
}

func (t *tx) dropChunks(tenant, kb, document string) error {
	if drop := t.reader.text.Drop; drop != "" {
		if _, err := t.Exec(drop, tenant, kb, document); err != nil {
			return err
		}
	}
	_, err := t.Exec(`DELETE FROM kb_chunks WHERE tenant = ? AND kb_id = ? AND document_id = ?`, tenant, kb, document)
	return err
}

func scanKB(rows *record, r *store.KBRow) (err error) {
	var labels string
	var created int64
	if err := rows.Scan(&r.Tenant, &r.ID, &r.Name, &r.Description, &labels, &r.CreatedBy, &created, &r.MAC); err != nil {
		return err
	}
	r.CreatedAt = fromMicros(created)
	if r.Labels, err = fromArray(labels); err != nil {
		return fmt.Errorf("labels of the knowledge base %s: %w", r.ID, err)
	}
	return nil
}

func scanDocument(rows *record, r *store.DocumentRow, more ...any) (err error) {
	var labels string
	var created, updated int64
	if err := rows.Scan(append([]any{&r.Tenant, &r.KB, &r.ID, &r.SourceID, &r.SourceType, &r.ObjectID, &r.Title, &r.Filename, &r.MIME, &r.URL, &r.ContentHash,
		&r.Words, &r.Characters, &r.Chunks, &r.Extraction, &r.Attributes, &labels, &r.Principal, &r.CallID, &created, &updated, &r.TextHash, &r.MAC}, more...)...); err != nil {
		return err
	}
	r.CreatedAt, r.UpdatedAt = fromMicros(created), fromMicros(updated)
	if r.Labels, err = fromArray(labels); err != nil {
		return fmt.Errorf("labels of document %s: %w", r.ID, err)
	}
	return nil
}

// scanWhole reads a document with its text, which then is what its MAC has to be of.
func scanWhole(rows *record, d *store.DocumentRow) error {
	err := scanDocument(rows, d, &d.Text)
	d.TextHash = store.TextHash(d.Text)
	return err
}

func scanHit(rows *record, h *store.ChunkHit, more ...any) error {
	var d store.DocumentRow
	var c store.ChunkRow
	if err := scanDocument(rows, &d, append([]any{&c.N, &c.Start, &c.Text, &c.MAC}, more...)...); err != nil {
		return err
	}
	h.KB, h.DocumentID, h.ObjectID, h.SourceID, h.SourceType, h.Title, h.URL, h.Labels = d.KB, d.ID, d.ObjectID, d.SourceID, d.SourceType, d.Title, d.URL, d.Labels
	h.N, h.Start, h.Text = c.N, c.Start, c.Text
	h.Signed = append(d.Proofs(), c.ProofIn(d.Tenant, d.KB, d.ID))
	return nil
}
