package kb

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// A Document is one of a knowledge base.
type Document struct {
	KB         string         `json:"kb_id"`
	ID         string         `json:"document_id"`
	ObjectID   string         `json:"ko_id"`
	SourceID   string         `json:"source_id"`
	SourceType string         `json:"source_type"`
	Title      string         `json:"title"`
	Filename   string         `json:"filename"`
	MIME       string         `json:"mime_type"`
	URL        string         `json:"source_url"`
	Hash       string         `json:"content_hash"`
	Words      int64          `json:"word_count"`
	Characters int64          `json:"character_count"`
	Chunks     int64          `json:"chunk_count"`
	Extraction jsontext.Value `json:"extraction"`
	Attributes jsontext.Value `json:"attributes"`
	Labels     []string       `json:"labels"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
	Text       string         `json:"content,omitempty"` // left out of lists
}

func documentOf(r *documentRow) Document {
	return Document{
		r.KB, r.ID, r.ObjectID, r.SourceID, r.SourceType, r.Title, r.Filename, r.MIME, r.URL, r.ContentHash, r.Words, r.Characters, r.Chunks,
		jsontext.Value(r.Extraction), jsontext.Value(r.Attributes), r.Labels, r.CreatedAt, r.UpdatedAt, r.Text,
	}
}

// Document returns a document with its text, by its id or its source's.
func (b *Bases) Document(ctx context.Context, tenant, kb, id string) (Document, error) {
	row, err := b.opts.Store.Document(ctx, tenant, kb, id)
	if row == nil && err == nil {
		if row, err = b.opts.Store.DocumentBySource(ctx, tenant, kb, id); row != nil && err == nil {
			row, err = b.opts.Store.Document(ctx, tenant, kb, row.ID)
		}
	}
	if err != nil {
		return Document{}, err
	}
	if row == nil {
		return Document{}, plugin.Errorf(plugin.CodeNotFound, "the knowledge base %.80s has no document %.200q; 'mortise kb show %.80s' lists what it has", kb, id, kb)
	}
	return documentOf(row), nil
}

// Characters returns how many characters the text of a document has, 0 where there
// is none.
func (b *Bases) Characters(ctx context.Context, tenant, kb, id string) (int64, error) {
	rows, err := b.opts.Store.Documents(ctx, documentFilter{Tenant: tenant, KB: kb, ID: id, Limit: 1})
	if err != nil {
		return 0, err
	}
	if len(rows) > 0 {
		return rows[0].Characters, nil
	}
	row, err := b.opts.Store.DocumentBySource(ctx, tenant, kb, id)
	if row == nil || err != nil {
		return 0, err
	}
	return row.Characters, nil
}

// A Listing says which documents are wanted.
type Listing struct {
	KB         string
	SourceType string // "" for any
	After      string // a document's id
	Limit      int    // 100 where it is 0

	// Room is asked for the bytes of what is about to be read, all in all; nil where
	// there is enough.
	Room func(bytes int) error
}

// How many documents are read at a time by one who has to ask for room, and how many
// bytes one has at most without its text.
const (
	listStep     = 2
	documentMost = 2*maxAttributes + 16<<10
)

// Documents returns the documents of a knowledge base without their text, by id.
func (b *Bases) Documents(ctx context.Context, tenant string, l Listing) ([]Document, error) {
	if l.Limit == 0 {
		l.Limit = 100
	}
	if l.Limit < 1 || l.Limit > 1000 {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the limit is %d; it is 1 to 1000", l.Limit)
	}
	if _, err := b.row(ctx, tenant, l.KB); err != nil {
		return nil, err
	}
	documents := []Document{}
	step, size := l.Limit, 0
	if l.Room != nil {
		step = listStep
	}
	for after := l.After; len(documents) < l.Limit; step = min(2*step, 64) {
		step = min(step, l.Limit-len(documents))
		if l.Room != nil {
			if err := l.Room(size + step*documentMost); err != nil {
				return nil, err
			}
		}
		rows, err := b.opts.Store.Documents(ctx, documentFilter{Tenant: tenant, KB: l.KB, SourceType: l.SourceType, After: after, Limit: step})
		if err != nil {
			return nil, err
		}
		for i := range rows {
			documents = append(documents, documentOf(&rows[i]))
			size += len(rows[i].Attributes) + len(rows[i].Extraction) + 4<<10
			after = rows[i].ID
		}
		if len(rows) < step {
			break
		}
	}
	return documents, nil
}

// Remove deletes a document by its id or its source's. by is who wants it.
func (b *Bases) Remove(ctx context.Context, tenant, kb, id, by string) (Document, error) {
	d, err := b.Document(ctx, tenant, kb, id)
	if err != nil {
		return d, err
	}
	return d, b.opts.Store.Write(ctx, func(tx Tx) error {
		found, err := tx.DeleteDocument(tenant, kb, d.ID)
		if err != nil || !found {
			return err
		}
		return b.note(tx, tenant, plugin.EntryKBRemoved, kb, by, map[string]any{"kb": kb, "document": d.ID, "source_id": d.SourceID, "content_hash": d.Hash})
	})
}

// A Removal is what a plugin put into a knowledge base for a user, to be deleted
// in a transaction.
type Removal struct {
	tenant    string
	documents []documentRow
}

// Found reports whether there is anything to delete.
func (r *Removal) Found() bool { return len(r.documents) > 0 }

// Documents returns what would be deleted, without the texts.
func (r *Removal) Documents() []Document {
	documents := make([]Document, len(r.documents))
	for i := range r.documents {
		documents[i] = documentOf(&r.documents[i])
	}
	return documents
}

// Delete deletes it. It may be run again.
func (r *Removal) Delete(tx Tx) error {
	for _, d := range r.documents {
		if _, err := tx.DeleteDocument(r.tenant, d.KB, d.ID); err != nil {
			return err
		}
	}
	return nil
}

// Object finds what a plugin put into a knowledge base, by its ko_id.
func (b *Bases) Object(ctx context.Context, tenant, kb, object string) (*Removal, error) {
	if _, err := b.row(ctx, tenant, kb); err != nil {
		return nil, err
	}
	rows, err := b.opts.Store.Documents(ctx, documentFilter{Tenant: tenant, KB: kb, ObjectID: object, Limit: 10})
	return &Removal{tenant, rows}, err
}
