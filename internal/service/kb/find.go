package kb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of finding by a field, which reads all there is.
const (
	findPage      = 20        // of an answer
	findStep      = 200       // documents that are read at a time
	maxFound      = 20_000    // that are put in order
	maxFindBytes  = 256 << 20 // of text that is looked through
	findOrderRune = 64        // of a field, by which findings are ordered
	findSteps     = 1 << 25   // of holding values against the condition
)

// A Finding asks for what meets a condition, a page of it.
type Finding struct {
	Bases      []Base
	Condition  *Condition
	Page       int // from 1
	Descending bool
}

// A Found is one page of what was found (Shu, search_chunks and search_documents).
type Found struct {
	Results []any `json:"results"`
	Total   int   `json:"total_results"`
	Page    int   `json:"page"`
	Size    int   `json:"page_size"`
}

// A ChunkFound is a passage, as Shu's search_chunks has it.
type ChunkFound struct {
	Document string         `json:"document_id"`
	Base     string         `json:"knowledge_base_name"`
	Index    int64          `json:"chunk_index"`
	Summary  *string        `json:"summary"`
	Topics   jsontext.Value `json:"topics"`
	Words    int            `json:"word_count"`
	Created  time.Time      `json:"created_at"`
}

// A DocumentFound is a document, as Shu's search_documents and get_document have it.
type DocumentFound struct {
	ID         string         `json:"id"`
	Base       string         `json:"knowledge_base_name"`
	Title      string         `json:"title"`
	URL        *string        `json:"source_url"`
	Modified   *string        `json:"source_modified_at"`
	Synopsis   *string        `json:"synopsis"`
	Type       *string        `json:"document_type"`
	Manifest   jsontext.Value `json:"capability_manifest"`
	Relational jsontext.Value `json:"relational_context"`
	Words      int64          `json:"word_count"`
	Created    time.Time      `json:"created_at"`
	Content    *string        `json:"content,omitempty"` // of get_document
}

// A profile is what the attributes of a document say of what it is about. Its
// plugin says that; the host makes up nothing.
type profile struct {
	Modified   *string        `json:"modified_at"`
	Summary    *string        `json:"summary"`
	Synopsis   *string        `json:"synopsis"`
	Type       *string        `json:"document_type"`
	Topics     jsontext.Value `json:"topics"`
	Manifest   jsontext.Value `json:"capability_manifest"`
	Relational jsontext.Value `json:"relational_context"`
}

func profileOf(attributes string) (p profile) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(attributes), &members) != nil {
		return p
	}
	for name, text := range map[string]**string{"modified_at": &p.Modified, "summary": &p.Summary, "synopsis": &p.Synopsis, "document_type": &p.Type} {
		_ = json.Unmarshal(members[name], text) // a text, or nothing
	}
	p.Topics, p.Manifest, p.Relational = jsontext.Value(members["topics"]), jsontext.Value(members["capability_manifest"]), jsontext.Value(members["relational_context"])
	return p
}

// DocumentRowOf returns a document as Shu has it; with its content where that is asked for.
func DocumentRowOf(base string, d *Document, content bool) DocumentFound {
	p := profileOf(string(d.Attributes))
	row := DocumentFound{
		ID: d.ID, Base: base, Title: d.Title, Modified: p.Modified, Synopsis: p.Synopsis, Type: p.Type,
		Manifest: orNull(p.Manifest), Relational: orNull(p.Relational), Words: d.Words, Created: d.CreatedAt,
	}
	if d.URL != "" {
		row.URL = &d.URL
	}
	if content {
		row.Content = &d.Text
	}
	return row
}

func orNull(v jsontext.Value) jsontext.Value {
	if len(v) == 0 {
		return jsontext.Value("null")
	}
	return v
}

// Named returns knowledge bases, each of which must be there.
func (b *Bases) Named(ctx context.Context, tenant string, ids []string) ([]Base, error) {
	if len(ids) > maxBases {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%d knowledge bases are named; at most %d are searched at a time", len(ids), maxBases)
	}
	bases := make([]Base, len(ids))
	for i, id := range ids {
		row, err := b.row(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		bases[i] = baseOf(row)
	}
	return bases, nil
}

// A match is the place of something that was found.
type match struct {
	order    string
	base     int
	document string
	n        int64
}

// A finder looks through knowledge bases for one Find.
type finder struct {
	*Bases
	tenant  string
	ask     Finding
	matches []match
	labels  []string
	read    int // bytes of text
	work    *budget.Steps
}

// Find returns what meets a condition, in the order of its field, and what all of
// it is tainted with. It reads everything there is in those knowledge bases.
func (b *Bases) Find(ctx context.Context, tenant string, ask Finding) (Found, []string, error) {
	f := &finder{Bases: b, tenant: tenant, ask: ask, work: budget.NewSteps(ctx, findSteps)}
	for i := range ask.Bases {
		if err := f.base(ctx, i); err != nil {
			return Found{}, f.labels, err
		}
	}
	slices.SortStableFunc(f.matches, func(a, b match) int {
		by := cmp.Or(strings.Compare(a.order, b.order), cmp.Compare(a.base, b.base), strings.Compare(a.document, b.document), cmp.Compare(a.n, b.n))
		if ask.Descending {
			return -by
		}
		return by
	})
	page := max(ask.Page, 1)
	found := Found{Results: []any{}, Total: len(f.matches), Page: page, Size: findPage}
	if page > len(f.matches)/findPage+1 {
		return found, f.labels, nil
	}
	from := (page - 1) * findPage
	for _, m := range f.matches[min(from, len(f.matches)):min(from+findPage, len(f.matches))] {
		row, err := f.row(ctx, m)
		if err != nil {
			return Found{}, f.labels, err
		}
		if row != nil { // else it was deleted meanwhile
			found.Results = append(found.Results, row)
		}
	}
	return found, f.labels, nil
}

// base looks through one knowledge base.
func (f *finder) base(ctx context.Context, i int) error {
	after := ""
	for {
		rows, err := f.opts.Store.Documents(ctx, documentFilter{Tenant: f.tenant, KB: f.ask.Bases[i].ID, After: after, Limit: findStep})
		if err != nil || len(rows) == 0 {
			return err
		}
		for r := range rows {
			if err := f.document(ctx, i, &rows[r]); err != nil {
				return err
			}
		}
		if after = rows[len(rows)-1].ID; len(rows) < findStep {
			return nil
		}
	}
}

// document looks through one document.
func (f *finder) document(ctx context.Context, i int, row *documentRow) error {
	c := f.ask.Condition
	if c.of == OfChunks {
		p := profileOf(row.Attributes)
		chunks, err := f.opts.Store.Chunks(ctx, f.tenant, row.KB, row.ID)
		if err != nil {
			return err
		}
		for _, chunk := range chunks {
			if err := f.take(i, row, chunk.N, c.value(row, &p, chunk.Text), len(chunk.Text)); err != nil {
				return err
			}
		}
		return nil
	}
	if c.field == "content" {
		whole, err := f.opts.Store.Document(ctx, f.tenant, row.KB, row.ID)
		if err != nil || whole == nil {
			return err
		}
		return f.take(i, row, 0, whole.Text, len(whole.Text))
	}
	p := profileOf(row.Attributes)
	return f.take(i, row, 0, c.value(row, &p, ""), len(row.Attributes))
}

// take keeps the place of a value that meets the condition.
func (f *finder) take(i int, row *documentRow, n int64, value any, size int) error {
	if f.read += size; f.read > maxFindBytes {
		return plugin.Errorf(plugin.CodeLimitExceeded, "the knowledge bases hold more than the %d MiB that a search by a field looks through: bind fewer of them", maxFindBytes>>20)
	}
	meets := f.ask.Condition.meets(f.work, value)
	switch err := f.work.Err(); {
	case errors.Is(err, budget.ErrSpent):
		return plugin.Errorf(plugin.CodeLimitExceeded, "a search for this value %w: look for one that is shorter or has fewer wildcards, or bind fewer knowledge bases", err)
	case err != nil || !meets:
		return err
	}
	if len(f.matches) == maxFound {
		return plugin.Errorf(plugin.CodeLimitExceeded, "more than %d match: ask for less", maxFound)
	}
	f.labels = plugin.Labels(f.labels, row.Labels)
	f.matches = append(f.matches, match{cut(spelled(value), findOrderRune), i, row.ID, n})
	return nil
}

// row returns what was found at a place, nil where it is gone.
func (f *finder) row(ctx context.Context, m match) (any, error) {
	base := f.ask.Bases[m.base]
	d, err := f.Document(ctx, f.tenant, base.ID, m.document)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, nil
	}
	f.labels = plugin.Labels(f.labels, d.Labels) // it may have grown since it was matched
	if err != nil || f.ask.Condition.of == OfDocuments {
		return DocumentRowOf(base.Name, &d, false), err
	}
	chunks, err := f.opts.Store.Chunks(ctx, f.tenant, base.ID, m.document)
	if err != nil {
		return nil, err
	}
	for _, chunk := range chunks {
		if chunk.N == m.n {
			p := profileOf(string(d.Attributes))
			return ChunkFound{d.ID, base.Name, chunk.N, p.Summary, orNull(p.Topics), len(strings.Fields(chunk.Text)), d.CreatedAt}, nil
		}
	}
	return nil, nil
}
