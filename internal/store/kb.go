package store

import (
	"context"
	"iter"
	"time"
)

// A KBRow is a knowledge base: documents that are searched together.
type KBRow struct {
	Tenant      string
	ID          string
	Name        string
	Description string
	Labels      []string // of everything in it
	CreatedBy   string
	CreatedAt   time.Time
	MAC         string
}

// A DocumentRow is a document of a knowledge base, as text. It is replaced as a
// whole; a source has one in each knowledge base.
type DocumentRow struct {
	Tenant      string
	KB          string
	ID          string
	SourceID    string // what it is elsewhere; unique within its knowledge base
	SourceType  string // who put it there: plugin:NAME, or upload for a person
	ObjectID    string // ko_id: the same for the same source of the same plugin and user
	Title       string
	Filename    string
	MIME        string
	URL         string // where people find the source
	ContentHash string // of what it was made from; equal ones need not be made again
	Words       int64
	Characters  int64
	Chunks      int64
	Extraction  string // JSON: how the text was won
	Attributes  string // JSON
	Labels      []string
	Principal   string
	CallID      string // the call that put it there, "" for a person's
	CreatedAt   time.Time
	UpdatedAt   time.Time
	TextHash    string // PutDocument makes it
	MAC         string

	Text string // only where the document is asked for by its id
}

// A ChunkRow is a passage of a document.
type ChunkRow struct {
	N         int64 // from 0, in the order of the text
	Start     int64 // where it begins in the text, in characters
	Text      string
	Terms     string // the words by which it is found, with spaces between them
	Embedding []byte // little-endian float32; nil where none was made
	Model     string // that made it; "" where there is none
	MAC       string
}

// A DocumentFilter says which documents are wanted. Empty fields ask for
// nothing. They come by id.
type DocumentFilter struct {
	ID         string // "" for any, as with the others
	Tenant     string
	KB         string
	SourceType string
	ObjectID   string
	After      string // an id
	Limit      int
}

// A ChunkQuery asks for the passages that fit some words best.
type ChunkQuery struct {
	Tenant string
	KBs    []string
	Terms  []string // letters and digits only; one of them is enough
	Limit  int
}

// A ChunkHit is a passage that was found, with what it is part of.
type ChunkHit struct {
	KB         string
	DocumentID string
	ObjectID   string
	SourceID   string
	SourceType string
	Title      string
	URL        string
	Labels     []string
	N          int64
	Start      int64
	Text       string
	Score      float64 // the more the better; of one engine's own scale
	Signed     []Proof // of the document and of the passage
}

// An UnembeddedFilter asks for passages of a knowledge base that a model has not
// embedded, because it could not be asked or another one was. They come by
// document and number.
type UnembeddedFilter struct {
	Tenant   string
	KB       string
	Model    string
	Document string // after passage N of this document; "" for the first
	N        int64
	Limit    int
}

// A PassageRow is a passage to be embedded.
type PassageRow struct {
	DocumentID string
	N          int64
	Text       string
}

// A VectorRow is a passage as a model of embeddings sees it.
type VectorRow struct {
	KB         string
	DocumentID string
	N          int64
	Embedding  []byte
}

// A KBReader reads knowledge bases, their documents and passages.
type KBReader interface {
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
}

// A KBWriter is what a transaction may do to them.
type KBWriter interface {
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
}
