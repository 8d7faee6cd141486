package service

import (
	"context"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// A documentKey names a document that a dry run would have made or deleted, by
// its id or its source's. An objectKey names what a plugin put there, by ko_id.
type (
	documentKey struct{ tenant, kb, id string }
	objectKey   struct{ tenant, kb, id string }
)

// dryExcerpt is how many characters of a document a person is shown.
const dryExcerpt = 400

// A documentShown is a document as a change has it.
type documentShown struct {
	ID     string `json:"document_id"`
	Source string `json:"source_id"`
	Title  string `json:"title"`
	Words  int64  `json:"words"`
	Chunks int64  `json:"chunks"`
	Text   string `json:"text,omitempty"` // the beginning
}

func documentOf(d kb.Document) documentShown {
	text := d.Text
	if utf8.RuneCountInString(text) > dryExcerpt {
		text = string([]rune(text)[:dryExcerpt]) + "…"
	}
	return documentShown{d.ID, d.SourceID, d.Title, d.Words, d.Chunks, text}
}

// document returns a document as the dry run would have left it.
func (g *grant) document(ctx context.Context, base, id string) (kb.Document, error) {
	if d, changed := keptDry[*kb.Document](g, documentKey{g.call.Tenant, base, id}); changed {
		if d == nil {
			return kb.Document{}, plugin.Errorf(plugin.CodeNotFound, "the dry run would have deleted the document %.200q of %.80s", id, base)
		}
		return *d, nil
	}
	characters, err := g.broker.Knowledge.Characters(ctx, g.call.Tenant, base, id)
	if err != nil {
		return kb.Document{}, err
	}
	if err := take(ctx, kbGetDocument, int(min(6*characters, math.MaxInt32))+budget.AnswerFree); err != nil { // with its text as JSON
		return kb.Document{}, err
	}
	return g.broker.Knowledge.Document(ctx, g.call.Tenant, base, id)
}

// ingestDry answers with what would have come of a source that was read and cut.
func (g *grant) ingestDry(ctx context.Context, method, base string, p *kb.Prepared) (any, *plugin.Change, error) {
	result, made := p.Result(), p.Document()
	if made.ID == "" || result.Skipped && p.Idle() {
		return result, nil, nil
	}
	if d, changed := keptDry[*kb.Document](g, documentKey{g.call.Tenant, base, made.ID}); changed && d != nil && d.Hash == made.Hash {
		g.heard(d.Labels)
		result.Skipped, result.SkipReason = true, kb.HashMatch
		return result, nil, nil
	}
	c := &plugin.Change{Target: base + "/" + made.SourceID, After: shown(documentOf(made)), Summary: fmt.Sprintf("taken in: %d words in %d passages", made.Words, made.Chunks)}
	was, err := g.document(ctx, base, made.ID)
	switch {
	case err == nil:
		c.Before, c.Summary = shown(documentOf(was)), fmt.Sprintf("changed: %d words in %d passages", made.Words, made.Chunks)
		if result.Skipped {
			made.Text, c.Summary = was.Text, "the same text; what is known of it changes"
			c.After = shown(documentOf(made))
		}
	case plugin.CodeOf(err) != plugin.CodeNotFound:
		return nil, nil, err
	}
	for _, id := range []string{made.ID, made.SourceID} {
		if err := g.keep(method, documentKey{g.call.Tenant, base, id}, &made, len(made.Text)); err != nil {
			return nil, nil, err
		}
	}
	return result, c, g.keep(method, objectKey{g.call.Tenant, base, made.ObjectID}, &made, 0)
}

// deleteDry says which documents would be gone.
func (g *grant) deleteDry(base, object, external string, r *kb.Removal) (any, *plugin.Change, error) {
	gone := r.Documents()
	if d, changed := keptDry[*kb.Document](g, objectKey{g.call.Tenant, base, object}); changed {
		if gone = nil; d != nil {
			gone = []kb.Document{*d}
		}
	}
	if len(gone) == 0 {
		return deletion{}, nil, nil
	}
	g.hearAll(gone)
	for _, d := range gone {
		for _, id := range []string{d.ID, d.SourceID} {
			if err := g.keep(kbDelete, documentKey{g.call.Tenant, base, id}, (*kb.Document)(nil), 0); err != nil {
				return nil, nil, err
			}
		}
	}
	c := &plugin.Change{Target: base + "/" + external, Before: shown(documentOf(gone[0])), Summary: "deleted"}
	return deletionOf(gone), c, g.keep(kbDelete, objectKey{g.call.Tenant, base, object}, (*kb.Document)(nil), 0)
}
