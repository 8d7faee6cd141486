package kb

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/words"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what is said about a document.
const (
	maxSource     = 1024     // bytes of a source's id
	maxTitle      = 500      // characters; longer ones are cut
	maxURL        = 4096     // bytes
	maxAttributes = 64 << 10 // bytes
)

// A Source is what a document is made of: a file, or text.
type Source struct {
	KB    string
	ID    string // what it is elsewhere
	Title string // the file's own, or its name, where it is empty
	URL   string

	File *extract.File // nil for text
	OCR  extract.Mode
	Text string

	Method  string         // how Text was won; text where it is empty
	Details map[string]any // of the extraction, beside the file's own

	Attributes map[string]any
	Labels     []string // what it is tainted with

	// ByHash: a file is the same as before by its attribute source_hash alone,
	// and what cannot be read is not read again until it changes (Shu).
	ByHash bool

	By By
}

// By says who puts a document there.
type By struct {
	Plugin    string // "" for a person
	Principal string
	Call      string
	Operation string // of the call
	Session   string // likewise
}

func (by By) sourceType() string {
	if by.Plugin == "" {
		return "upload"
	}
	return "plugin:" + by.Plugin
}

// An Ingested is what became of a source (Shu, the envelope of the ingest
// methods).
type Ingested struct {
	ObjectID   string     `json:"ko_id"`
	DocumentID string     `json:"document_id"`
	Words      int64      `json:"word_count"`
	Characters int64      `json:"character_count"`
	Chunks     int64      `json:"chunk_count"`
	Extraction Extraction `json:"extraction"`
	Created    bool       `json:"created"` // there was no document of the source before
	Skipped    bool       `json:"skipped,omitempty"`
	SkipReason string     `json:"skip_reason,omitempty"` // hash_match, hash_match_error_state, or why no text came

	// Unembedded: the model of embeddings could not be asked, and is later.
	Unembedded bool `json:"embedding_pending,omitempty"`
}

// HashMatch is why a source is skipped that has not changed.
const HashMatch = "hash_match"

// An Extraction says how text was won.
type Extraction struct {
	Method     string         `json:"method"`
	Engine     string         `json:"engine"`
	Confidence float64        `json:"confidence"`
	Duration   float64        `json:"duration"` // seconds
	Details    map[string]any `json:"details"`
}

// A Prepared is a source that was read and cut, ready to be put in its place.
type Prepared struct {
	row     documentRow
	chunks  []chunkRow
	same    bool // as what is there; only what is known about it may differ
	changed bool
	failed  *kvRow // what is kept of a source that cannot be read
	result  Ingested
	heard   []string // labels of what was there, of which the result tells
}

// Result is what Put will have done.
func (p *Prepared) Result() Ingested { return p.result }

// Heard returns the labels of what was kept of the source before. The result says
// at least whether there was anything, and of a source that is skipped what is
// known of its text.
func (p *Prepared) Heard() []string { return p.heard }

// Document is what Put will have made of the source; without an id where no text
// was won.
func (p *Prepared) Document() Document { return documentOf(&p.row) }

// Ingest puts a source into a knowledge base.
func (b *Bases) Ingest(ctx context.Context, tenant string, s Source) (Ingested, error) {
	p, err := b.Prepare(ctx, tenant, s)
	if err != nil {
		return Ingested{}, err
	}
	if p.Idle() {
		return p.result, nil
	}
	err = b.opts.Store.Write(ctx, func(tx Tx) error {
		if err := p.Put(tx); err != nil || s.By.Plugin != "" || p.failed != nil { // the call's journal has it
			return err
		}
		return b.note(tx, tenant, plugin.EntryKBIngested, s.KB, s.By.Principal,
			map[string]any{"kb": s.KB, "document": p.row.ID, "source_id": p.row.SourceID, "content_hash": p.row.ContentHash})
	})
	return p.result, err
}

// Prepare does all of Ingest but the writing.
func (b *Bases) Prepare(ctx context.Context, tenant string, s Source) (*Prepared, error) {
	row, err := b.rowOf(tenant, &s)
	if err != nil {
		return nil, err
	}
	prior, err := b.opts.Store.DocumentBySource(ctx, tenant, s.KB, s.ID)
	if err != nil {
		return nil, err
	}
	if prior != nil && prior.ObjectID == row.ObjectID && same(row, prior, &s) {
		p, err := unchanged(row, prior, &s)
		if err == nil {
			p.heard = prior.Labels
		}
		return p, err
	}
	base, err := b.row(ctx, tenant, s.KB)
	if err != nil {
		return nil, err
	}
	if p, err := b.gaveUp(ctx, row, &s); p != nil || err != nil {
		return p, err
	}
	row.Labels = plugin.Labels(row.Labels, base.Labels)
	if prior != nil {
		row.CreatedAt = prior.CreatedAt
	}
	p, err := b.prepare(ctx, row, &s)
	if err == nil {
		p.result.Created = prior == nil && !p.same
		if prior != nil {
			p.heard = prior.Labels
		}
	}
	return p, err
}

// same reports whether a source is what it was: by the hash that its plugin gives
// of it, where it gave one before too, else by what it holds, unless that does not
// count. force_reingest is never the same.
func same(row, prior *documentRow, s *Source) bool {
	if force, _ := s.Attributes["force_reingest"].(bool); force {
		return false
	}
	var before struct {
		Hash any `json:"source_hash"`
	}
	now, _ := s.Attributes["source_hash"].(string)
	if json.Unmarshal([]byte(prior.Attributes), &before) == nil && now != "" {
		if was, _ := before.Hash.(string); was != "" {
			return now == was
		}
	}
	return prior.ContentHash == row.ContentHash && !(s.ByHash && s.File != nil)
}

// rowOf is the document of a source before it is read.
func (b *Bases) rowOf(tenant string, s *Source) (*documentRow, error) {
	attributes, err := json2.Marshal(s.Attributes, json2.Deterministic(true))
	details, detailsErr := json2.Marshal(s.Details, json2.Deterministic(true))
	if s.Attributes == nil {
		attributes = []byte("{}")
	}
	switch {
	case err != nil || detailsErr != nil:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the attributes of %.200s: %w", s.ID, errors.Join(err, detailsErr))
	case s.ID == "" || len(s.ID) > maxSource || !utf8.ValidString(s.ID) || strings.IndexByte(s.ID, 0) >= 0:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the source's id has %d bytes; it is text of 1 to %d", len(s.ID), maxSource)
	case len(s.URL) > maxURL || !utf8.ValidString(s.URL):
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the source's URL has %d bytes; it has at most %d", len(s.URL), maxURL)
	case len(attributes) > maxAttributes:
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the attributes have %d bytes; at most %d are kept", len(attributes), maxAttributes)
	case s.File == nil && len(s.Text) > extract.MaxText:
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the text has %d bytes; at most %d are kept", len(s.Text), extract.MaxText)
	}
	now := b.now()
	row := &documentRow{
		Tenant: tenant, KB: s.KB, ID: documentID(s.KB, s.ID), SourceID: s.ID, SourceType: s.By.sourceType(),
		ObjectID: ObjectID(s.By.Plugin, s.By.Principal, s.ID), Title: clean(s.Title), URL: clean(s.URL), Attributes: clean(string(attributes)),
		Labels: append([]string{}, s.Labels...), Principal: s.By.Principal, CallID: s.By.Call, CreatedAt: now, UpdatedAt: now, MIME: "text/plain",
	}
	what, known := []byte(s.Text), "null" // what is known of a text is kept, and makes it no other text
	if s.File != nil {
		known = string(details)
		row.MIME, row.Filename, what = cut(clean(s.File.MIME), maxTitle), cut(clean(s.File.Name), maxTitle), s.File.Data
	}
	row.Title = cut(row.Title, maxTitle)
	form := []string{"mortise document " + extract.Version, canon.Sum(what), row.Title, row.MIME, row.Filename, string(s.OCR), known}
	row.ContentHash = canon.Sum([]byte(strings.Join(form, "\n")))
	return row, nil
}

// unchanged is a source whose document need not be made again.
func unchanged(row, prior *documentRow, s *Source) (*Prepared, error) {
	var extraction Extraction
	if err := json.Unmarshal([]byte(prior.Extraction), &extraction); err != nil {
		return nil, err
	}
	p := &Prepared{same: true, row: *prior}
	p.row.Text = ""
	if s.File == nil && len(s.Details) > 0 {
		details := map[string]any{}
		maps.Copy(details, extraction.Details)
		maps.Copy(details, s.Details)
		extraction.Details = details
		raw, err := spelledExtraction(s, extraction)
		if err != nil {
			return nil, err
		}
		p.row.Extraction = raw
	}
	labels := plugin.Labels(prior.Labels, row.Labels)
	p.changed = prior.Extraction != p.row.Extraction || prior.URL != row.URL || prior.Attributes != row.Attributes || len(labels) != len(prior.Labels)
	p.row.URL, p.row.Attributes, p.row.Labels, p.row.CallID, p.row.UpdatedAt = row.URL, row.Attributes, labels, row.CallID, row.UpdatedAt
	p.result = resultOf(prior, extraction)
	p.result.Skipped, p.result.SkipReason = true, HashMatch
	return p, nil
}

func resultOf(row *documentRow, e Extraction) Ingested {
	return Ingested{ObjectID: row.ObjectID, DocumentID: row.ID, Words: row.Words, Characters: row.Characters, Chunks: row.Chunks, Extraction: e}
}

// prepare reads a source, cuts it, and has its passages embedded.
func (b *Bases) prepare(ctx context.Context, row *documentRow, s *Source) (*Prepared, error) {
	text, extraction, err := b.read(ctx, s)
	var refused *extract.Refusal
	if errors.As(err, &refused) {
		return b.refused(row, s, refused)
	}
	if err != nil {
		return nil, err
	}
	if row.Title == "" {
		row.Title = cut(clean(text.Title), maxTitle)
	}
	if row.Title == "" {
		row.Title = row.Filename
	}
	row.Text = b.opts.Clean(clean(text.Text))
	cuts := passages(row.Text)
	p := &Prepared{row: *row, chunks: make([]chunkRow, len(cuts))}
	for i, c := range cuts {
		terms := words.Of(c.text)
		if i == 0 {
			terms = append(words.Of(row.Title), terms...)
		}
		p.chunks[i] = chunkRow{N: int64(i), Start: int64(c.start), Text: c.text, Terms: strings.Join(terms, " ")}
	}
	embedded := b.embed(ctx, row.Tenant, s.By, p.chunks)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.row.Extraction, err = spelledExtraction(s, extraction); err != nil {
		return nil, err
	}
	p.row.Words, p.row.Characters, p.row.Chunks = int64(len(strings.Fields(row.Text))), int64(utf8.RuneCountInString(row.Text)), int64(len(cuts))
	p.result = resultOf(&p.row, extraction)
	p.result.Unembedded = !embedded
	return p, nil
}

// spelledExtraction is what is known of a source as it is kept.
func spelledExtraction(s *Source, e Extraction) (string, error) {
	raw, err := json2.Marshal(e, json2.Deterministic(true))
	if err != nil {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "the extraction metadata of %.200s: %w", s.ID, err)
	}
	if len(raw) > maxAttributes {
		return "", plugin.Errorf(plugin.CodeInputTooLarge, "the extraction metadata has %d bytes; at most %d are kept", len(raw), maxAttributes)
	}
	return clean(string(raw)), nil
}

// read wins the text.
func (b *Bases) read(ctx context.Context, s *Source) (extract.Text, Extraction, error) {
	text := extract.Text{Text: strings.ReplaceAll(s.Text, "\r\n", "\n"), Method: "text", Engine: "text", Confidence: 1}
	switch {
	case s.File != nil && b.opts.Files == nil:
		return text, Extraction{}, plugin.Errorf(plugin.CodeUnavailable, "this host reads no files")
	case s.File != nil:
		got, err := b.opts.Files.Extract(ctx, *s.File, s.OCR)
		if err != nil {
			return text, Extraction{}, err
		}
		text = got
	case strings.TrimSpace(s.Text) == "":
		return text, Extraction{}, &extract.Refusal{Reason: extract.Empty, Code: plugin.CodeInvalidInput, Message: "the text is empty"}
	case s.Method != "":
		text.Method = s.Method
	}
	e := Extraction{Method: text.Method, Engine: text.Engine, Confidence: text.Confidence, Duration: text.Took.Round(time.Millisecond).Seconds(), Details: map[string]any{}}
	maps.Copy(e.Details, s.Details)
	maps.Copy(e.Details, text.Details)
	if text.Kind != "" {
		e.Details["kind"] = text.Kind
	}
	return text, e, nil
}

// Idle reports whether there is nothing to write.
func (p *Prepared) Idle() bool { return p.same && !p.changed && p.failed == nil }

// Put writes what was prepared, in a transaction. It may be run again.
func (p *Prepared) Put(tx Tx) error {
	switch {
	case p.Idle():
		return nil
	case p.failed != nil:
		return tx.PutKV(*p.failed)
	case p.same:
		_, err := tx.UpdateDocument(p.row)
		return err
	}
	found, err := tx.PutDocument(p.row, p.chunks)
	if err == nil && !found {
		err = Missing(p.row.KB)
	}
	return err
}

// clean makes text such as every store keeps.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
}

func cut(text string, most int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), most)])
}
