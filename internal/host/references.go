package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/service/reference"
	"github.com/mortise-dev/mortise/plugin"
)

// References are the reference data of a host. All may read them; who may configure
// mortise.reference changes them.
type References struct {
	kept
	data *reference.Data
}

// A ReferenceKey is the data of one key.
type ReferenceKey = reference.Key

// MitreTechniques is the key of the table of techniques.
const MitreTechniques = reference.MitreTechniques

// ReadReference reads a file that is to be the data of a key: the data, and its form.
func ReadReference(key, file string) (form string, text []byte, err error) {
	if err := reference.CheckKey(key); err != nil {
		return "", nil, err
	}
	return reference.ReadGiven(file)
}

// ReadMitre makes the table of techniques from files, as JSON, and counts those of each matrix.
func ReadMitre(files ...string) (table []byte, counts map[string]int, err error) {
	return reference.MitreTable(files...)
}

// List returns the keys of the reference data. They are everybody's to read:
// plugins look things up in them for each caller.
func (r References) List() ([]ReferenceKey, error) { return r.data.List() }

// Add puts a file in the place of a key's data.
func (r References) Add(ctx context.Context, key, file string) (ReferenceKey, error) {
	return r.refer(ctx, "add", key, func() (ReferenceKey, error) { return r.data.Add(key, file) })
}

// ReferencePrevious is the form that puts back what a key had before its last change.
const ReferencePrevious = reference.Previous

// Put puts data, in the form json, csv, txt or [ReferencePrevious], in the place of a key's.
func (r References) Put(ctx context.Context, key, form string, raw []byte) (ReferenceKey, error) {
	return r.refer(ctx, "add", key, func() (ReferenceKey, error) { return r.data.Put(key, form, raw) })
}

// AddMitre makes the table of techniques from files.
func (r References) AddMitre(ctx context.Context, files ...string) (key ReferenceKey, counts map[string]int, err error) {
	key, err = r.refer(ctx, "add", reference.MitreTechniques, func() (key ReferenceKey, err error) {
		key, counts, err = r.data.AddMitre(files...)
		return key, err
	})
	return key, counts, err
}

// Remove takes a key's data away.
func (r References) Remove(ctx context.Context, key string) error {
	_, err := r.refer(ctx, "remove", key, func() (ReferenceKey, error) { return ReferenceKey{}, r.data.Remove(key) })
	return err
}

// refer changes the data of a key. The entry has the hash of what is there then.
func (r References) refer(ctx context.Context, action, key string, do func() (ReferenceKey, error)) (ReferenceKey, error) {
	if err := r.allow(ctx, ReferencePlugin, use{plugin.EntryReferenceRefused, key, action, action + " reference data"}); err != nil {
		return ReferenceKey{}, err
	}
	done, err := do()
	if err != nil {
		return done, err
	}
	kind, body := plugin.EntryReferenceRemoved, map[string]any{"key": key}
	if action == "add" {
		kind = plugin.EntryReferenceAdded
		value, _, err := r.data.Get(ctx, key, reference.MaxFile)
		if err != nil {
			return done, err
		}
		body["bytes"], body["value_hash"] = done.Size, canon.Sum(value)
	}
	return done, r.g.Store.Write(context.WithoutCancel(ctx), func(tx Tx) error { return r.g.Note(tx, r.by, kind, key, body) })
}
