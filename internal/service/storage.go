package service

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	storageName   = "storage"
	storageGet    = "storage.get"
	storagePut    = "storage.put"
	storageDelete = "storage.delete"
	storageWrite  = "storage_write"
)

// Bounds of what plugins keep in the store.
const (
	keyBytes       = 512
	namespaceBytes = 200
	valueBytes     = 64 << 10
	keptBytes      = 64 << 20 // of one plugin in one tenant
	keptEntryBytes = 256      // that each takes beside its key and value
)

// A stored is the value of storage.get and cursor.get.
type stored struct {
	Found bool            `json:"found"`
	Value json.RawMessage `json:"value,omitzero"`
}

// A deletion is the value of a method that deletes.
type deletion struct {
	Deleted  bool   `json:"deleted"`
	Document string `json:"ko_id,omitempty"` // of kb.delete: the document that is gone, and how many passages it had
	Chunks   *int64 `json:"chunk_count,omitempty"`
}

type storageArgs struct {
	Namespace string          `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
}

func storageRead(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	key, _, err := g.storageKey(storageGet, args)
	if err != nil {
		return nil, err
	}
	return g.read(ctx, storageGet, key)
}

func storagePutTask(g *grant, args json.RawMessage) (task, error) {
	key, value, err := g.storageKey(storagePut, args)
	if err != nil {
		return task{}, err
	}
	if err := checkValue(storagePut, value); err != nil {
		return task{}, err
	}
	return g.keeps(storageWrite, storagePut, key, value)
}

func storageDeleteTask(g *grant, args json.RawMessage) (task, error) {
	key, _, err := g.storageKey(storageDelete, args)
	if err != nil {
		return task{}, err
	}
	return g.drops(storageWrite, storageDelete, key)
}

// storageKey reads the arguments of a storage method.
func (g *grant) storageKey(method string, args json.RawMessage) (kvKey, json.RawMessage, error) {
	var in storageArgs
	if err := decode(method, args, &in); err != nil {
		return kvKey{}, nil, err
	}
	if len(in.Namespace) > namespaceBytes || strings.ContainsRune(in.Namespace, 0) {
		return kvKey{}, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: a namespace has at most %d bytes and none that is NUL", method, namespaceBytes)
	}
	key, err := g.keptKey(method, "storage/"+in.Namespace, in.Key)
	return key, in.Value, err
}

// keptKey is the key under which the plugin keeps data for the principal of the call.
func (g *grant) keptKey(method, namespace, key string) (kvKey, error) {
	if key == "" || len(key) > keyBytes || strings.ContainsRune(key, 0) {
		return kvKey{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: a key has 1 to %d bytes and none that is NUL", method, keyBytes)
	}
	return kvKey{Tenant: g.call.Tenant, Owner: g.target.Manifest.Name, Scope: g.subject(), Namespace: namespace, Key: key}, nil
}

// subject names whose call it is, as secrets and what is kept have it.
func (g *grant) subject() string {
	p := g.call.Principal
	if p.Type == "" {
		return "user::" + p.ID
	}
	return p.Type + "::" + p.ID
}

func checkValue(method string, value json.RawMessage) error {
	switch {
	case len(value) == 0:
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: value is missing", method)
	case len(value) > valueBytes:
		return plugin.Errorf(plugin.CodeInputTooLarge, "%s: the value has %d bytes; at most %d are kept", method, len(value), valueBytes)
	}
	return nil
}

// read returns what is kept. The caller's answer inherits its taint.
func (g *grant) read(ctx context.Context, method string, key kvKey) (any, error) {
	if g.broker.Store == nil {
		return nil, nowhere(method)
	}
	if err := take(ctx, method, 3*valueBytes); err != nil { // the row, and its value as JSON twice
		return nil, err
	}
	row, err := g.row(ctx, key)
	if err != nil || row == nil {
		return stored{}, err
	}
	g.heard(row.Labels)
	return stored{true, row.Value}, nil
}

// row returns what is kept under a key, nil for nothing; in a dry run, what
// would be.
func (g *grant) row(ctx context.Context, key kvKey) (*kvRow, error) {
	if row, changed := keptDry[*kvRow](g, key); changed {
		return row, nil
	}
	row, err := g.broker.Store.KV(ctx, key)
	if err != nil || row == nil || expired(row) {
		return nil, err
	}
	return row, nil
}

func expired(row *kvRow) bool {
	return !row.ExpiresAt.IsZero() && !row.ExpiresAt.After(time.Now())
}

// keeps is the task of keeping a value, with what the call is tainted with.
func (g *grant) keeps(effect, method string, key kvKey, value json.RawMessage) (task, error) {
	if g.broker.Store == nil {
		return task{}, nowhere(method)
	}
	made := func() kvRow {
		row := kvRow{KVKey: key, Value: value, Labels: plugin.Labels(g.call.Labels, g.Labels()), UpdatedAt: time.Now().UTC()}
		if row.Labels == nil {
			row.Labels = []string{}
		}
		return row
	}
	stand := func(ctx context.Context) (any, *plugin.Change, error) {
		was, err := g.row(ctx, key)
		if err != nil {
			return nil, nil, err
		}
		row := made()
		c := &plugin.Change{Target: targetOf(key), After: value, Summary: "kept"}
		if was != nil {
			c.Before, c.Summary, row.Labels = was.Value, "changed", plugin.Labels(row.Labels, was.Labels)
		}
		return nothing{}, c, g.keep(method, key, &row, int(sizeOf(&row)))
	}
	return task{class: Local, effect: effect, dry: stand, commit: func(ctx context.Context, tx ledger.Tx) (any, error) {
		row := made()
		if _, err := g.account(ctx, tx, method, key, sizeOf(&row)); err != nil {
			return nil, err
		}
		return nothing{}, tx.PutKV(row)
	}}, nil
}

// drops is the task of deleting a value. The answer says whether there was one, and
// so the caller's answer inherits its taint.
func (g *grant) drops(effect, method string, key kvKey) (task, error) {
	if g.broker.Store == nil {
		return task{}, nowhere(method)
	}
	stand := func(ctx context.Context) (any, *plugin.Change, error) {
		was, err := g.row(ctx, key)
		if err != nil || was == nil {
			return deletion{}, nil, err
		}
		g.heard(was.Labels)
		c := &plugin.Change{Target: targetOf(key), Before: was.Value, Summary: "deleted"}
		return deletion{Deleted: true}, c, g.keep(method, key, (*kvRow)(nil), 0)
	}
	return task{class: Local, effect: effect, dry: stand, commit: func(ctx context.Context, tx ledger.Tx) (any, error) {
		was, err := g.account(ctx, tx, method, key, 0)
		if err != nil {
			return nil, err
		}
		if was != nil {
			g.heard(was.Labels)
		}
		found, err := tx.DeleteKV(key)
		return deletion{Deleted: found}, err
	}}, nil
}

// account charges size bytes for what is under a key to the quota of its plugin.
// Concurrent changes wait. It returns what is there.
func (g *grant) account(ctx context.Context, tx ledger.Tx, method string, key kvKey, size int64) (was *kvRow, err error) {
	subject := "kv:" + key.Owner
	if _, _, err := tx.Spend(key.Tenant, subject, "", 0, math.MaxInt64); err != nil {
		return nil, err
	}
	if was, err = tx.KV(ctx, key); err != nil {
		return nil, err
	}
	if was != nil {
		size -= sizeOf(was)
	}
	_, ok, err := tx.Spend(key.Tenant, subject, "", size, keptBytes)
	if err == nil && !ok {
		err = plugin.Errorf(plugin.CodeLimitExceeded, "%s: %s keeps %d bytes here and may not keep more; delete what is not needed", method, key.Owner, keptBytes)
	}
	return was, err
}

// targetOf is a key as a person reads it: with its namespace, where it has one.
func targetOf(key kvKey) string {
	if namespace, _ := strings.CutPrefix(key.Namespace, "storage/"); namespace != "" && namespace != cursorNamespace {
		return namespace + "/" + key.Key
	}
	return key.Key
}

func sizeOf(row *kvRow) int64 {
	return int64(len(row.Namespace) + len(row.Key) + len(row.Value) + keptEntryBytes)
}

func nowhere(method string) error {
	return plugin.Errorf(plugin.CodeUnavailable, "%s: this host keeps nothing for plugins", method)
}
