package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A KnowledgeDocument is a document of a knowledge base.
type KnowledgeDocument struct {
	KB         string          `json:"kb_id"`
	ID         string          `json:"document_id"`
	ObjectID   string          `json:"ko_id"`
	SourceID   string          `json:"source_id"`
	SourceType string          `json:"source_type"`
	Title      string          `json:"title"`
	Filename   string          `json:"filename"`
	MIME       string          `json:"mime_type"`
	URL        string          `json:"source_url"`
	Hash       string          `json:"content_hash"`
	Words      int64           `json:"word_count"`
	Characters int64           `json:"character_count"`
	Chunks     int64           `json:"chunk_count"`
	Extraction json.RawMessage `json:"extraction,omitzero" doc:"How its text was won."`
	Attributes json.RawMessage `json:"attributes,omitzero"`
	Labels     []string        `json:"labels" nullable:"false"`
	CreatedAt  time.Time       `json:"created_at"`
	UpdatedAt  time.Time       `json:"updated_at"`
	Text       string          `json:"content,omitzero" doc:"Of one document, not in lists."`
}

// Documents are a page of them.
type Documents struct {
	Documents []KnowledgeDocument `json:"documents" nullable:"false"`
	Next      string              `json:"next_page_token" doc:"Empty on the last page."`
}

// An Ingested is what became of a document that was put into a knowledge base.
type Ingested struct {
	ObjectID   string `json:"ko_id"`
	DocumentID string `json:"document_id"`
	Words      int64  `json:"word_count"`
	Characters int64  `json:"character_count"`
	Chunks     int64  `json:"chunk_count"`
	Method     string `json:"method" doc:"How its text was won."`
	Created    bool   `json:"created" doc:"There was no document of the source before."`
	Skipped    bool   `json:"skipped" doc:"It is as it was, or no text came of it."`
	SkipReason string `json:"skip_reason,omitzero"`
	Unembedded bool   `json:"embedding_pending" doc:"The model of embeddings could not be asked, and is later."`

	Extraction json.RawMessage `json:"extraction,omitzero" doc:"How its text was won, or why there is none."`
}

// A DocumentNamed is a document that is meant.
type DocumentNamed struct {
	KnowledgeNamed
	Document string `path:"document" maxLength:"128"`
}

func documentOf(d *host.Document) KnowledgeDocument {
	out := KnowledgeDocument{
		KB: d.KB, ID: d.ID, ObjectID: d.ObjectID, SourceID: d.SourceID, SourceType: d.SourceType, Title: d.Title, Filename: d.Filename, MIME: d.MIME, URL: d.URL,
		Hash: d.Hash, Words: d.Words, Characters: d.Characters, Chunks: d.Chunks, Labels: append([]string{}, d.Labels...), CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt, Text: d.Text,
	}
	if len(d.Extraction) > 0 {
		out.Extraction = json.RawMessage(d.Extraction)
	}
	if len(d.Attributes) > 0 {
		out.Attributes = json.RawMessage(d.Attributes)
	}
	return out
}

func (r *registry) documents() {
	add(r, route{method: "GET", path: "knowledge/{id}/documents", id: "list-documents", scope: host.ScopeRead, about: "The documents of a knowledge base, by id, without their text"}, r.listDocuments)
	add(r, route{
		method: "POST", path: "knowledge/{id}/documents", id: "add-document", scope: host.ScopeConfigure, stays: true,
		about: "Put a text, or the bytes of a file, into a knowledge base, in place of an earlier document of that source",
	}, r.addDocument)
	add(r, route{method: "GET", path: "knowledge/{id}/documents/{document}", id: "get-document-text", scope: host.ScopeRead, about: "A document with its text"}, r.getDocument)
	add(r, route{method: "DELETE", path: "knowledge/{id}/documents/{document}", id: "delete-document", scope: host.ScopeConfigure, about: "Delete a document"}, r.deleteDocument)
}

func (r *registry) listDocuments(ctx context.Context, q *request, in *struct {
	KnowledgeNamed
	Page
	After string `query:"after" maxLength:"128" doc:"The id of a document: the first page begins behind it."`
}) (*struct{ Body Documents }, error) {
	last, err := in.after("documents", in.ID)
	if err != nil {
		return nil, err
	}
	all, err := q.api.Knowledge().Documents(ctx, host.Documents{KB: in.ID, After: cmp.Or(last, in.After), Limit: in.size() + 1})
	if err != nil {
		return nil, noBase(err, in.ID)
	}
	found := []KnowledgeDocument{}
	for i := range all {
		found = append(found, documentOf(&all[i]))
	}
	out := new(struct{ Body Documents })
	out.Body.Documents, out.Body.Next = cut(found, in.size(), "", func(d *KnowledgeDocument) string { return d.ID }, "documents", in.ID)
	return out, nil
}

func (r *registry) addDocument(ctx context.Context, q *request, in *struct {
	KnowledgeNamed
	Body struct {
		SourceID string   `json:"source_id" minLength:"1" maxLength:"1024" doc:"What it is elsewhere: another document of that source takes its place."`
		Title    string   `json:"title,omitzero" maxLength:"1024" doc:"The file's own, or its name, where it is left out."`
		URL      string   `json:"source_url,omitzero" maxLength:"4096"`
		Text     string   `json:"text,omitzero" doc:"The text, or else data."`
		Data     []byte   `json:"data,omitzero" doc:"The bytes of a file, in base64."`
		Filename string   `json:"filename,omitzero" maxLength:"255" doc:"Of data; it is a name and no place."`
		MIME     string   `json:"mime_type,omitzero" maxLength:"255" doc:"Of data; what the bytes say counts for more."`
		OCR      string   `json:"ocr,omitzero" enum:"always,auto,fallback,never" doc:"When text is read from pictures; fallback where it is left out."`
		Labels   []string `json:"labels,omitzero" maxItems:"2" nullable:"false" enum:"untrusted,private" doc:"What it is tainted with."`
	} `nameHint:"AddDocument"`
}) (*struct{ Body Ingested }, error) {
	b := &in.Body
	if (b.Text == "") == (len(b.Data) == 0) {
		return nil, refused(0, plugin.CodeInvalidInput, "a document has either text or data", Place{Pointer: "/data", Detail: "it is there exactly where text is not"})
	}
	if _, err := q.api.Knowledge().Get(ctx, in.ID); err != nil {
		return nil, noBase(err, in.ID)
	}
	mode, err := host.ParseOCR(b.OCR)
	if err != nil {
		return nil, err
	}
	s := host.Source{KB: in.ID, ID: b.SourceID, Title: b.Title, URL: b.URL, Text: b.Text, OCR: mode, Labels: b.Labels, By: host.OnBehalf{Operation: "kb add"}}
	if len(b.Data) > 0 {
		s.File = &host.DocumentFile{Data: b.Data, MIME: b.MIME, Name: b.Filename}
	}
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	got, err := q.api.Knowledge().Ingest(ctx, s)
	if err != nil {
		return nil, unlessMissing(err, "knowledge base", in.ID)
	}
	how, err := json.Marshal(got.Extraction)
	return &struct{ Body Ingested }{Ingested{
		got.ObjectID, got.DocumentID, got.Words, got.Characters, got.Chunks, got.Extraction.Method, got.Created, got.Skipped, got.SkipReason, got.Unembedded, how,
	}}, err
}

func (r *registry) getDocument(ctx context.Context, q *request, in *DocumentNamed) (*struct{ Body KnowledgeDocument }, error) {
	d, err := q.document(ctx, in)
	if err != nil {
		return nil, err
	}
	return &struct{ Body KnowledgeDocument }{documentOf(&d)}, nil
}

// document returns a document by its id; that of its source is not taken for one here.
func (q *request) document(ctx context.Context, in *DocumentNamed) (host.Document, error) {
	if _, err := q.api.Knowledge().Get(ctx, in.ID); err != nil {
		return host.Document{}, noBase(err, in.ID)
	}
	d, err := q.api.Knowledge().Document(ctx, in.ID, in.Document)
	if err == nil && d.ID != in.Document || isInvalid(err) {
		err = missing("document", in.Document)
	}
	return d, unlessMissing(err, "document", in.Document)
}

func (r *registry) deleteDocument(ctx context.Context, q *request, in *DocumentNamed) (*struct{ Body Removed }, error) {
	if _, err := q.document(ctx, in); err != nil {
		return nil, err
	}
	d, err := q.api.Knowledge().RemoveDocument(ctx, in.ID, in.Document)
	if err != nil {
		return nil, unlessMissing(err, "document", in.Document)
	}
	return &struct{ Body Removed }{Removed{d.ID}}, nil
}
