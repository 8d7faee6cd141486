package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Knowledge implements [Host].
func (r *remote) Knowledge() Knowledge { return knowledge{r} }

type knowledge struct{ *remote }

func baseOf(b rest.KnowledgeBase) host.KnowledgeBase { return host.KnowledgeBase(b) }

// List implements [Knowledge].
func (k knowledge) List(ctx context.Context) ([]host.KnowledgeBase, error) {
	return listed(ctx, k.remote, "knowledge_bases", baseOf, "knowledge")
}

// Get implements [Knowledge].
func (k knowledge) Get(ctx context.Context, id string) (host.KnowledgeBase, error) {
	var b rest.KnowledgeBase
	err := k.get(ctx, &b, nil, "knowledge", id)
	return baseOf(b), err
}

// Create implements [Knowledge].
func (k knowledge) Create(ctx context.Context, base host.KnowledgeBase) (host.KnowledgeBase, error) {
	var made rest.KnowledgeBase
	err := k.post(ctx, struct {
		ID          string   `json:"id"`
		Name        string   `json:"name,omitzero"`
		Description string   `json:"description,omitzero"`
		Labels      []string `json:"labels,omitzero"`
	}{base.ID, base.Name, base.Description, base.Labels}, &made, "knowledge")
	return baseOf(made), err
}

// Delete implements [Knowledge]: it returns what the knowledge base was.
func (k knowledge) Delete(ctx context.Context, id string) (host.KnowledgeBase, error) {
	was, err := k.Get(ctx, id)
	if err != nil {
		return was, err
	}
	return was, k.change(ctx, http.MethodDelete, nil, nil, "", "knowledge", was.ID)
}

func documentOf(d rest.KnowledgeDocument) host.Document {
	return host.Document{
		KB: d.KB, ID: d.ID, ObjectID: d.ObjectID, SourceID: d.SourceID, SourceType: d.SourceType, Title: d.Title, Filename: d.Filename, MIME: d.MIME, URL: d.URL,
		Hash: d.Hash, Words: d.Words, Characters: d.Characters, Chunks: d.Chunks, Extraction: jsontext.Value(d.Extraction), Attributes: jsontext.Value(d.Attributes),
		Labels: d.Labels, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt, Text: d.Text,
	}
}

// Documents implements [Knowledge].
func (k knowledge) Documents(ctx context.Context, l host.Documents) ([]host.Document, error) {
	query := url.Values{}
	if l.After != "" {
		query.Set("after", l.After)
	}
	rows, err := rowsOf[rest.KnowledgeDocument](ctx, k.remote, "documents", query, l.Limit, "knowledge", l.KB, "documents")
	return each(rows, documentOf), err
}

// FindDocument implements [Knowledge].
func (k knowledge) FindDocument(ctx context.Context, base, given string) (host.Document, error) {
	id, err := k.bySource(ctx, base, given)
	if err != nil {
		return host.Document{}, err
	}
	return host.InDocument(ctx, k, base, id, k.document)
}

// bySource returns the id of the document whose source is given; what may be an id is one.
func (k knowledge) bySource(ctx context.Context, base, given string) (string, error) {
	if strings.HasPrefix(given, "doc_") {
		return given, nil
	}
	all, err := k.Documents(ctx, host.Documents{KB: base})
	for _, d := range all {
		if d.SourceID == given {
			return d.ID, nil
		}
	}
	if err == nil && strings.Contains(given, "/") { // which no id has
		err = plugin.Errorf(plugin.CodeNotFound, "the knowledge base %.80s has no document %.200q; 'mortise kb show %.80s' lists what it has", base, given, base)
	}
	return given, err
}

func (k knowledge) document(ctx context.Context, base, id string) (host.Document, error) {
	var d rest.KnowledgeDocument
	err := k.get(ctx, &d, nil, "knowledge", base, "documents", id)
	return documentOf(d), err
}

// FindAndRemove implements [Knowledge]: it returns what the document was.
func (k knowledge) FindAndRemove(ctx context.Context, base, given string) (host.Document, error) {
	was, err := k.FindDocument(ctx, base, given)
	if err != nil {
		return was, err
	}
	return was, k.change(ctx, http.MethodDelete, nil, nil, "", "knowledge", base, "documents", was.ID)
}

// An addition is the body of a document that is put into a knowledge base.
type addition struct {
	SourceID string   `json:"source_id"`
	Title    string   `json:"title,omitzero"`
	URL      string   `json:"source_url,omitzero"`
	Text     string   `json:"text,omitzero"`
	Data     []byte   `json:"data,omitzero"`
	Filename string   `json:"filename,omitzero"`
	MIME     string   `json:"mime_type,omitzero"`
	OCR      string   `json:"ocr,omitzero"`
	Labels   []string `json:"labels,omitzero"`
}

// Ingest implements [Knowledge]. The bytes of a file are sent.
func (k knowledge) Ingest(ctx context.Context, s host.Source) (done host.Ingested, err error) {
	body := addition{SourceID: s.ID, Title: s.Title, URL: s.URL, Text: s.Text, OCR: string(s.OCR), Labels: s.Labels}
	if s.File != nil {
		body.Data, body.Filename, body.MIME = s.File.Data, s.File.Name, s.File.MIME
	}
	var got rest.Ingested
	if err := k.post(ctx, body, &got, "knowledge", s.KB, "documents"); err != nil {
		return done, err
	}
	done = host.Ingested{
		ObjectID: got.ObjectID, DocumentID: got.DocumentID, Words: got.Words, Characters: got.Characters, Chunks: got.Chunks,
		Created: got.Created, Skipped: got.Skipped, SkipReason: got.SkipReason, Unembedded: got.Unembedded,
	}
	done.Extraction.Method = got.Method
	if len(got.Extraction) > 0 {
		err = json.Unmarshal(got.Extraction, &done.Extraction)
	}
	return done, err
}

// Embed implements [Knowledge].
func (k knowledge) Embed(ctx context.Context, id string, _ host.OnBehalf) (host.Embedded, error) {
	var e rest.Embedded
	err := k.post(ctx, nil, &e, "knowledge", id+":embed")
	return host.Embedded(e), err
}

// Search implements [Knowledge]: in one knowledge base, or in all.
func (k knowledge) Search(ctx context.Context, q host.Query) ([]host.Hit, error) {
	path := []string{"knowledge:search"}
	body := struct {
		rest.Search
		KBs []string `json:"knowledge_bases,omitzero"`
	}{rest.Search{Query: q.Text, Limit: q.Limit}, nil}
	switch len(q.KBs) {
	case 0:
	case 1:
		path = []string{"knowledge", q.KBs[0] + ":search"}
	default:
		body.KBs = q.KBs
	}
	var hits rest.Hits
	err := k.post(ctx, body, &hits, path...)
	return each(hits.Results, func(h rest.Hit) host.Hit { return host.Hit(h) }), err
}
