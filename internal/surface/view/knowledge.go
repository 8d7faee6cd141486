package view

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// KnowledgeBases are knowledge bases as they are listed.
var KnowledgeBases = List[host.KnowledgeBase]{
	Key:    "knowledge_bases",
	Titles: []string{"ID", "DOCUMENTS", "CHUNKS", "CREATED", "NAME"},
	None:   "there is no knowledge base; 'mortise kb create ID' begins one",
	Fit:    Always,
	Row: func(b host.KnowledgeBase) []string {
		return []string{b.ID, count(b.Documents), count(b.Chunks), terminal.Clock(b.CreatedAt), b.Name}
	},
}

// Embedded are the embeddings that were made.
var Embedded = List[host.Embedded]{
	Key:    "embedded",
	Titles: []string{"ID", "EMBEDDED", "CHUNKS", "MADE", "MODEL"},
	Fit:    Always,
	Row: func(e host.Embedded) []string {
		return []string{e.KB, count(e.Embedded), count(e.Passages), count(e.Made), e.Model}
	},
}

// KnowledgeBase shows a knowledge base with documents that are in it.
func KnowledgeBase(w io.Writer, base host.KnowledgeBase, in []host.Document) error {
	t := terminal.Details(w)
	t.Row("knowledge base", base.ID)
	t.Row("name", base.Name)
	t.Some("description", base.Description)
	t.Some("labels", base.Labels...)
	t.Row("documents", count(base.Documents))
	t.Row("chunks", count(base.Chunks))
	t.Row("search", searchOf(&base))
	t.Row("created", terminal.Clock(base.CreatedAt)+" by "+base.CreatedBy)
	return errors.Join(t.Flush(), documents.below(w, in))
}

// Document shows a document with its text.
func Document(w io.Writer, d host.Document) error {
	t := terminal.Details(w)
	for _, row := range [][2]string{
		{"document", d.ID}, {"title", d.Title}, {"source", d.SourceID}, {"from", d.SourceType}, {"url", d.URL}, {"type", d.MIME},
		{"labels", strings.Join(d.Labels, ", ")}, {"extraction", string(d.Extraction)}, {"attributes", string(d.Attributes)}, {"changed", terminal.Clock(d.UpdatedAt)},
	} {
		if row[1] != "" && row[1] != "{}" {
			t.Row(row[0], row[1])
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	text := d.Text
	if terminal.Is(w) {
		text = strings.Join(slices.Collect(terminal.SafeLines(text)), "")
	}
	_, err := fmt.Fprintf(w, "\n%s\n", text)
	return err
}

// An AddedDocument is what became of a file.
type AddedDocument struct {
	File string `json:"file"`
	host.Ingested
}

// Found are the passages that a search found.
type Found struct {
	Results []host.Hit `json:"results"`
}

// Passages shows what a search found.
func Passages(w, errs io.Writer, f Found) error {
	if len(f.Results) == 0 {
		Say(errs, "nothing is found")
	}
	for i, hit := range f.Results {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s  %s  %s #%d\n", terminal.Safe(hit.KB), terminal.Safe(hit.DocumentID), terminal.Safe(terminal.Dash(hit.Title)), hit.Chunk)
		fmt.Fprintf(w, "  %s\n", terminal.Safe(terminal.OneLine(hit.Text, 300)))
	}
	return nil
}

// AddedDocuments are what became of files.
var AddedDocuments = List[AddedDocument]{
	Titles: []string{"DOCUMENT", "WORDS", "CHUNKS", "METHOD", "FILE", ""},
	Fit:    Always,
	Row: func(d AddedDocument) []string {
		return []string{terminal.Dash(d.DocumentID), count(d.Words), count(d.Chunks), d.Extraction.Method, d.File, d.SkipReason}
	},
}

var documents = List[host.Document]{
	Titles: []string{"DOCUMENT", "WORDS", "CHUNKS", "FROM", "CHANGED", "TITLE"},
	Fit:    Always,
	Row: func(d host.Document) []string {
		return []string{d.ID, count(d.Words), count(d.Chunks), d.SourceType, terminal.Clock(d.UpdatedAt), terminal.Dash(d.Title)}
	},
}

// searchOf says by what a knowledge base is searched.
func searchOf(base *host.KnowledgeBase) string {
	switch {
	case base.Embedding == "":
		return "by words; no model of embeddings is configured"
	case base.Embedded < base.Chunks:
		return fmt.Sprintf("by words, and by meaning for %d of %d chunks, with %s; 'mortise kb embed %s' does the rest", base.Embedded, base.Chunks, base.Embedding, base.ID)
	}
	return "by words and by meaning, with " + base.Embedding
}
