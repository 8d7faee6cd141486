package host

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// What knowledge bases are asked with, and answer with.
type (
	KnowledgeBase = kb.Base
	Document      = kb.Document
	DocumentFile  = extract.File
	Documents     = kb.Listing
	Source        = kb.Source
	Ingested      = kb.Ingested
	Query         = kb.Query
	Hit           = kb.Hit
	Embedded      = kb.Embedded
	OnBehalf      = kb.By
)

// Bounds and defaults of what is put into a knowledge base.
const (
	MaxDocument  = extract.MaxFile
	UsualOCR     = extract.Fallback
	SameAsBefore = kb.HashMatch // why a document is skipped that was there
)

// OCRModes say when text is read from pictures.
var OCRModes = extract.Modes

// ParseOCR returns the mode of that name.
func ParseOCR(name string) (extract.Mode, error) { return extract.ParseMode(name) }

// Knowledge are the knowledge bases of the host's tenant, as one principal may use them.
type Knowledge struct {
	kept
	engine *kb.Bases
}

// Create begins a knowledge base, which is then theirs.
func (k Knowledge) Create(ctx context.Context, base kb.Base) (kb.Base, error) {
	base.CreatedBy = principal.Name(k.by)
	created, err := k.engine.Create(ctx, k.g.Tenant, base)
	if plugin.CodeOf(err) != plugin.CodeInvalidInput {
		return created, err
	}
	if was, getErr := k.engine.Get(ctx, k.g.Tenant, base.ID); getErr == nil && !k.own(was.CreatedBy) && !k.all(KnowledgePlugin) {
		return kb.Base{}, k.hide(ctx, KnowledgePlugin, use{kind: plugin.EntryKBRefused, subject: was.ID, action: "create"}, plugin.AsError(err))
	}
	return kb.Base{}, err
}

// List returns the knowledge bases that they may use, by id.
func (k Knowledge) List(ctx context.Context) ([]kb.Base, error) {
	all, err := k.engine.List(ctx, k.g.Tenant)
	if err != nil || k.all(KnowledgePlugin) {
		return all, err
	}
	return slices.DeleteFunc(all, func(b kb.Base) bool { return !k.own(b.CreatedBy) }), nil
}

// Get returns a knowledge base.
func (k Knowledge) Get(ctx context.Context, id string) (kb.Base, error) {
	return k.base(ctx, id, "see")
}

func (k Knowledge) base(ctx context.Context, id, action string) (kb.Base, error) {
	base, err := k.engine.Get(ctx, k.g.Tenant, id)
	if err != nil || k.own(base.CreatedBy) || k.all(KnowledgePlugin) {
		return base, err
	}
	return kb.Base{}, k.hide(ctx, KnowledgePlugin, use{kind: plugin.EntryKBRefused, subject: base.ID, action: action}, kb.Missing(id))
}

// Documents returns documents of a knowledge base without their text.
func (k Knowledge) Documents(ctx context.Context, l kb.Listing) ([]kb.Document, error) {
	if _, err := k.base(ctx, l.KB, "see"); err != nil {
		return nil, err
	}
	return k.engine.Documents(ctx, k.g.Tenant, l)
}

// Document returns a document with its text.
func (k Knowledge) Document(ctx context.Context, base, id string) (kb.Document, error) {
	if _, err := k.base(ctx, base, "read"); err != nil {
		return kb.Document{}, err
	}
	return k.engine.Document(ctx, k.g.Tenant, base, id)
}

// Ingest puts a document into a knowledge base.
func (k Knowledge) Ingest(ctx context.Context, s kb.Source) (kb.Ingested, error) {
	if _, err := k.base(ctx, s.KB, "add to"); err != nil {
		return kb.Ingested{}, err
	}
	s.By.Principal = principal.Name(k.by)
	return k.engine.Ingest(ctx, k.g.Tenant, s)
}

// Search finds passages in the knowledge bases that are named, or in all that they
// may use.
func (k Knowledge) Search(ctx context.Context, q kb.Query) ([]kb.Hit, error) {
	for _, id := range q.KBs {
		if _, err := k.base(ctx, id, "search"); err != nil {
			return nil, err
		}
	}
	if len(q.KBs) == 0 && !k.all(KnowledgePlugin) {
		mine, err := k.List(ctx)
		if err != nil || len(mine) == 0 {
			return []kb.Hit{}, err
		}
		for _, base := range mine {
			q.KBs = append(q.KBs, base.ID)
		}
	}
	q.By.Principal = principal.Name(k.by)
	return k.engine.Search(ctx, k.g.Tenant, q)
}

// Embed makes the embeddings that a knowledge base lacks.
func (k Knowledge) Embed(ctx context.Context, id string, by kb.By) (kb.Embedded, error) {
	if _, err := k.base(ctx, id, "embed"); err != nil {
		return kb.Embedded{}, err
	}
	by.Principal = principal.Name(k.by)
	return k.engine.Embed(ctx, k.g.Tenant, id, by)
}

// RemoveDocument deletes a document of a knowledge base.
func (k Knowledge) RemoveDocument(ctx context.Context, base, id string) (kb.Document, error) {
	if _, err := k.base(ctx, base, "delete from"); err != nil {
		return kb.Document{}, err
	}
	return k.engine.Remove(ctx, k.g.Tenant, base, id, principal.Name(k.by))
}

// Delete deletes a knowledge base with all that is in it, and returns what it
// was.
func (k Knowledge) Delete(ctx context.Context, id string) (kb.Base, error) {
	base, err := k.base(ctx, id, "delete")
	if err != nil {
		return base, err
	}
	return base, k.engine.Delete(ctx, k.g.Tenant, base.ID, principal.Name(k.by))
}
