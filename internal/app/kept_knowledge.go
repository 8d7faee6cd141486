package app

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/reference"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// CreateBase begins a knowledge base, which is then theirs.
func (k Kept) CreateBase(ctx context.Context, base kb.Base) (kb.Base, error) {
	base.CreatedBy = MemberName(k.by)
	created, err := k.app.Knowledge.Create(ctx, k.tenant, base)
	if plugin.CodeOf(err) != plugin.CodeInvalidInput {
		return created, err
	}
	if was, getErr := k.app.Knowledge.Get(ctx, k.tenant, base.ID); getErr == nil && !k.own(was.CreatedBy) && !k.all(KnowledgePlugin) {
		return kb.Base{}, k.hide(ctx, KnowledgePlugin, use{kind: plugin.EntryKBRefused, subject: was.ID, action: "create"}, plugin.AsError(err))
	}
	return kb.Base{}, err
}

// Bases returns the knowledge bases that they may use, by id.
func (k Kept) Bases(ctx context.Context) ([]kb.Base, error) {
	all, err := k.app.Knowledge.List(ctx, k.tenant)
	if err != nil || k.all(KnowledgePlugin) {
		return all, err
	}
	return slices.DeleteFunc(all, func(b kb.Base) bool { return !k.own(b.CreatedBy) }), nil
}

// Base returns a knowledge base.
func (k Kept) Base(ctx context.Context, id string) (kb.Base, error) { return k.base(ctx, id, "see") }

func (k Kept) base(ctx context.Context, id, action string) (kb.Base, error) {
	base, err := k.app.Knowledge.Get(ctx, k.tenant, id)
	if err != nil || k.own(base.CreatedBy) || k.all(KnowledgePlugin) {
		return base, err
	}
	return kb.Base{}, k.hide(ctx, KnowledgePlugin, use{kind: plugin.EntryKBRefused, subject: base.ID, action: action}, kb.Missing(id))
}

// Documents returns documents of a knowledge base without their text.
func (k Kept) Documents(ctx context.Context, l kb.Listing) ([]kb.Document, error) {
	if _, err := k.base(ctx, l.KB, "see"); err != nil {
		return nil, err
	}
	return k.app.Knowledge.Documents(ctx, k.tenant, l)
}

// Document returns a document with its text.
func (k Kept) Document(ctx context.Context, base, id string) (kb.Document, error) {
	if _, err := k.base(ctx, base, "read"); err != nil {
		return kb.Document{}, err
	}
	return k.app.Knowledge.Document(ctx, k.tenant, base, id)
}

// Ingest puts a document into a knowledge base.
func (k Kept) Ingest(ctx context.Context, s kb.Source) (kb.Ingested, error) {
	if _, err := k.base(ctx, s.KB, "add to"); err != nil {
		return kb.Ingested{}, err
	}
	s.By.Principal = MemberName(k.by)
	return k.app.Knowledge.Ingest(ctx, k.tenant, s)
}

// Search finds passages in the knowledge bases that are named, or in all that they
// may use.
func (k Kept) Search(ctx context.Context, q kb.Query) ([]kb.Hit, error) {
	for _, id := range q.KBs {
		if _, err := k.base(ctx, id, "search"); err != nil {
			return nil, err
		}
	}
	if len(q.KBs) == 0 && !k.all(KnowledgePlugin) {
		mine, err := k.Bases(ctx)
		if err != nil || len(mine) == 0 {
			return []kb.Hit{}, err
		}
		for _, base := range mine {
			q.KBs = append(q.KBs, base.ID)
		}
	}
	q.By.Principal = MemberName(k.by)
	return k.app.Knowledge.Search(ctx, k.tenant, q)
}

// Embed makes the embeddings that a knowledge base lacks.
func (k Kept) Embed(ctx context.Context, id string, by kb.By) (kb.Embedded, error) {
	if _, err := k.base(ctx, id, "embed"); err != nil {
		return kb.Embedded{}, err
	}
	by.Principal = MemberName(k.by)
	return k.app.Knowledge.Embed(ctx, k.tenant, id, by)
}

// RemoveDocument deletes a document of a knowledge base.
func (k Kept) RemoveDocument(ctx context.Context, base, id string) (kb.Document, error) {
	if _, err := k.base(ctx, base, "delete from"); err != nil {
		return kb.Document{}, err
	}
	return k.app.Knowledge.Remove(ctx, k.tenant, base, id, MemberName(k.by))
}

// DeleteBase deletes a knowledge base with all that is in it, and returns what it
// was.
func (k Kept) DeleteBase(ctx context.Context, id string) (kb.Base, error) {
	base, err := k.base(ctx, id, "delete")
	if err != nil {
		return base, err
	}
	return base, k.app.Knowledge.Delete(ctx, k.tenant, base.ID, MemberName(k.by))
}

// References returns the keys of the reference data. They are everybody's to read:
// plugins look things up in them for each caller.
func (k Kept) References() ([]reference.Key, error) { return k.app.Reference.List() }

// AddReference puts a file in the place of a key's data.
func (k Kept) AddReference(ctx context.Context, key, file string) (reference.Key, error) {
	return k.refer(ctx, "add", key, func() (reference.Key, error) { return k.app.Reference.Add(key, file) })
}

// AddMitre makes the table of techniques from files.
func (k Kept) AddMitre(ctx context.Context, files ...string) (key reference.Key, counts map[string]int, err error) {
	key, err = k.refer(ctx, "add", reference.MitreTechniques, func() (key reference.Key, err error) {
		key, counts, err = k.app.Reference.AddMitre(files...)
		return key, err
	})
	return key, counts, err
}

// RemoveReference takes a key's data away.
func (k Kept) RemoveReference(ctx context.Context, key string) error {
	_, err := k.refer(ctx, "remove", key, func() (reference.Key, error) { return reference.Key{}, k.app.Reference.Remove(key) })
	return err
}

// refer changes the data of a key. The entry has the hash of what is there then.
func (k Kept) refer(ctx context.Context, action, key string, do func() (reference.Key, error)) (reference.Key, error) {
	if err := k.allow(ctx, ReferencePlugin, use{plugin.EntryReferenceRefused, key, action, action + " reference data"}); err != nil {
		return reference.Key{}, err
	}
	done, err := do()
	if err != nil {
		return done, err
	}
	kind, body := plugin.EntryReferenceRemoved, map[string]any{"key": key}
	if action == "add" {
		kind = plugin.EntryReferenceAdded
		value, _, err := k.app.Reference.Get(ctx, key, reference.MaxFile)
		if err != nil {
			return done, err
		}
		body["bytes"], body["value_hash"] = done.Size, canon.Sum(value)
	}
	return done, k.app.Store.Write(context.WithoutCancel(ctx), func(tx store.Tx) error { return k.app.note(tx, k.by, kind, key, body) })
}
