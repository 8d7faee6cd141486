// Package kb keeps knowledge bases: documents as text, cut into passages that
// are found by their words, and by what they mean where there is a model of
// embeddings.
//
// A source has one document in a knowledge base. When the same version comes
// again, nothing is done; when it has changed, its document and all passages
// are replaced in one transaction, so that no reader finds half of it. A file
// that gives no text is skipped, and its earlier version stays.
//
// What is found carries the labels of the document it is part of, and its
// reader takes them on.
package kb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/plugin"
)

// A Reader wins text from files.
type Reader interface {
	Extract(ctx context.Context, f extract.File, mode extract.Mode) (extract.Text, error)
}

// Options say what knowledge bases are kept in.
type Options struct {
	Store    Store
	Files    Reader           // nil where no files are read
	Embedder Embedder         // nil for words alone
	Most     int              // knowledge bases of who creates them; any number where it is 0
	Now      func() time.Time // time.Now where it is nil

	// Clean takes out of a text what may not be kept. It may be nil.
	Clean func(text string) string
}

// Bases are the knowledge bases of all tenants. They are safe for concurrent
// use, by several processes too.
type Bases struct {
	opts Options
	rest rest
}

// New returns the knowledge bases in a store.
func New(o Options) *Bases {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clean == nil {
		o.Clean = func(text string) string { return text }
	}
	return &Bases{opts: o}
}

// Inside returns the same knowledge bases without the model of embeddings, so
// that nothing that is asked of them leaves the host.
func (b *Bases) Inside() *Bases {
	o := b.opts
	o.Embedder = nil
	return &Bases{opts: o}
}

// A Base is one knowledge base.
type Base struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Labels      []string  `json:"labels"` // of everything in it
	Documents   int64     `json:"documents"`
	Chunks      int64     `json:"chunks"`
	Embedding   string    `json:"embedding"` // the model of embeddings; "" where there is none, and words alone are searched
	Embedded    int64     `json:"embedded"`  // passages that have a vector by it
	CreatedBy   string    `json:"created_by"`
	CreatedAt   time.Time `json:"created_at"`
}

func baseOf(r *kbRow) Base {
	return Base{ID: r.ID, Name: r.Name, Description: r.Description, Labels: r.Labels, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt}
}

// Bounds of what is said about a knowledge base.
const (
	maxName        = 200
	maxDescription = 2000
	maxBases       = 64 // that are searched at a time
)

var baseID = pattern.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Create begins a knowledge base. An id has lower-case letters, digits, dots,
// dashes and underscores.
func (b *Bases) Create(ctx context.Context, tenant string, base Base) (Base, error) {
	switch {
	case !baseID.MatchString(base.ID):
		return Base{}, plugin.Errorf(plugin.CodeInvalidInput, "%.80q is no id of a knowledge base: it has 1 to 63 of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit", base.ID)
	case !printable(base.Name, maxName) || !printable(base.Description, maxDescription):
		return Base{}, plugin.Errorf(plugin.CodeInvalidInput, "the name has at most %d printable characters, and the description %d", maxName, maxDescription)
	}
	if base.Name == "" {
		base.Name = base.ID
	}
	row := kbRow{
		Tenant: tenant, ID: base.ID, Name: base.Name, Description: base.Description, Labels: append([]string{}, base.Labels...),
		CreatedBy: base.CreatedBy, CreatedAt: b.now(),
	}
	var fresh bool
	err := b.opts.Store.Write(ctx, func(tx Tx) (err error) {
		fresh = false
		if b.opts.Most > 0 {
			n, err := tx.Owned(ctx, ownedKnowledge, tenant, b.opts.Most, row.CreatedBy)
			if err = errors.Join(err, ownedKnowledge.Most(n, b.opts.Most, "limits.principal_knowledge")); err != nil {
				return err
			}
		}
		if fresh, err = tx.InsertKB(row); err != nil || !fresh {
			return err
		}
		return b.note(tx, tenant, plugin.EntryKBCreated, row.ID, row.CreatedBy, map[string]any{"kb": row.ID, "name": row.Name})
	})
	if err == nil && !fresh {
		err = plugin.Errorf(plugin.CodeInvalidInput, "the id %s is taken; choose another", base.ID)
	}
	return baseOf(&row), err
}

// List returns all knowledge bases, by id.
func (b *Bases) List(ctx context.Context, tenant string) ([]Base, error) {
	rows, err := b.opts.Store.KBs(ctx, tenant)
	bases := make([]Base, len(rows))
	for i := range rows {
		bases[i] = baseOf(&rows[i])
		if err == nil {
			err = b.count(ctx, tenant, &bases[i])
		}
	}
	return bases, err
}

// Get returns a knowledge base.
func (b *Bases) Get(ctx context.Context, tenant, id string) (Base, error) {
	row, err := b.row(ctx, tenant, id)
	if err != nil {
		return Base{}, err
	}
	base := baseOf(row)
	return base, b.count(ctx, tenant, &base)
}

func (b *Bases) count(ctx context.Context, tenant string, base *Base) (err error) {
	if base.Documents, base.Chunks, err = b.opts.Store.CountKB(ctx, tenant, base.ID); err != nil || b.opts.Embedder == nil {
		return err
	}
	base.Embedding = b.opts.Embedder.Space()
	base.Embedded, err = b.opts.Store.CountVectors(ctx, tenant, base.ID, base.Embedding)
	return err
}

// row returns a knowledge base that is there.
func (b *Bases) row(ctx context.Context, tenant, id string) (*kbRow, error) {
	row, err := b.opts.Store.KB(ctx, tenant, id)
	if err == nil && row == nil {
		err = Missing(id)
	}
	return row, err
}

// Missing says that there is no such knowledge base, or none that the caller may
// know of.
func Missing(id string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no knowledge base %.80q; 'mortise kb list' shows all there are, and 'mortise kb create ID' begins one", id)
}

// deleteStep is how many documents are deleted in one transaction.
const deleteStep = 50

// Delete deletes a knowledge base with all that is in it. by is who wants it.
func (b *Bases) Delete(ctx context.Context, tenant, id, by string) error {
	base, err := b.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	for {
		documents, err := b.opts.Store.Documents(ctx, documentFilter{Tenant: tenant, KB: id, Limit: deleteStep})
		if err != nil {
			return err
		}
		var gone bool
		err = b.opts.Store.Write(ctx, func(tx Tx) (err error) {
			gone = false
			for _, d := range documents {
				if _, err := tx.DeleteDocument(tenant, id, d.ID); err != nil {
					return err
				}
			}
			if gone, err = tx.DeleteKB(tenant, id); err != nil || !gone { // not while there are more documents
				return err
			}
			if _, err := tx.DeleteKVs(failedKey(tenant, id, "")); err != nil {
				return err
			}
			return b.note(tx, tenant, plugin.EntryKBDeleted, id, by, map[string]any{"kb": id, "documents": base.Documents})
		})
		if err != nil || gone || len(documents) == 0 {
			return err
		}
	}
}

// ObjectID is the id by which a plugin knows what it put there for a user (Shu,
// ko_id).
func ObjectID(pluginName, user, external string) string {
	sum := sha256.Sum256([]byte(pluginName + ":" + user + "|" + external))
	return hex.EncodeToString(sum[:])
}

// documentID is the id of a source's document.
func documentID(kb, source string) string {
	sum := sha256.Sum256([]byte(kb + "\n" + source))
	return "doc_" + hex.EncodeToString(sum[:12])
}

// note puts on record what a person did.
func (b *Bases) note(tx Tx, tenant string, kind plugin.EntryKind, subject, by string, body map[string]any) error {
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: b.now(), Tenant: tenant, Kind: kind, Subject: subject, Principal: by, Body: raw})
	return nil
}

func (b *Bases) now() time.Time { return b.opts.Now().UTC().Truncate(time.Microsecond) }

func printable(text string, most int) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= most && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
