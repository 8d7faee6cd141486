package store

import "time"

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
