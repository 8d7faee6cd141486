package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

var _ store.Reader = (*reader)(nil)

// A reader answers from wherever query asks: the pool, a snapshot or the
// transaction being written.
type reader struct {
	query  func(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	newest string                                     // the order of entries, newest first
	own    *Ownership                                 // of the engine
	text   *TextIndex                                 // of the engine
	typed  bool                                       // the engine leaves storage classes to who reads
	calm   context.Context                            // takes the place of callers' contexts; nil in none
	keep   string                                     // of the engine, in a transaction
	failed func(err error) error                      // receives each error; may be nil
	judge  func(ctx context.Context, err error) error // returns an error as callers get it; nil in a transaction that writes
	part   func() string                              // the tenant whose rows are asked for where a question names none; nil for those of all
}

// Body implements [store.Reader].
func (r *reader) Body(ctx context.Context, tenant, hash string) ([]byte, error) {
	q := selectFrom("data", "bodies")
	q.where("tenant = ?", tenant)
	q.where("hash = ?", hash)
	q.where("data IS NOT NULL")
	data, err := bytesOf(one(rows(ctx, r, q, func(rows *record, data *[]byte) error { return rows.Scan(data) })))
	if err == nil && data != nil && !chain.Sealed(data) && canon.Sum(data) != hash {
		return nil, &store.BodyError{Hash: hash}
	}
	return data, err
}

// bytesOf returns what a row has, which is not nil where it has no bytes.
func bytesOf(data *[]byte, err error) ([]byte, error) {
	switch {
	case data == nil:
		return nil, err
	case *data == nil: // a driver's way to say no bytes
		return []byte{}, err
	}
	return *data, err
}

// Bodies implements [store.Reader].
func (r *reader) Bodies(ctx context.Context) iter.Seq2[store.BodyRow, error] {
	q := selectFrom("tenant, hash, data, expires_at", "bodies")
	q.of(ctx, r, "")
	q.where("data IS NOT NULL")
	return rows(ctx, r, q, func(rows *record, b *store.BodyRow) error {
		var expires int64
		err := rows.Scan(&b.Tenant, &b.Hash, &b.Data, &expires)
		b.ExpiresAt = fromMicros(expires)
		return err
	})
}

// Entry implements [store.Reader].
func (r *reader) Entry(ctx context.Context, chain, seq int64) (*plugin.Entry, error) {
	q := selectFrom(entryColumns, "entries")
	q.of(ctx, r, "")
	q.where("chain = ?", chain)
	q.where("seq = ?", seq)
	return one(rows(ctx, r, q, scanEntry))
}

// Entries implements [store.Reader].
func (r *reader) Entries(ctx context.Context, f store.EntryFilter) iter.Seq2[plugin.Entry, error] {
	q := selectFrom(entryColumns, "entries")
	if f.Chain != 0 {
		q.where("chain = ?", f.Chain)
	}
	if f.After != 0 {
		q.where("seq > ?", f.After)
	}
	if f.Until != 0 {
		q.where("seq <= ?", f.Until)
	}
	q.of(ctx, r, f.Tenant)
	if f.Subject != "" {
		q.where("subject = ?", f.Subject)
	}
	if strings.HasSuffix(f.Kind, ".") {
		q.where("substr(kind, 1, ?) = ?", len(f.Kind), f.Kind)
	} else if f.Kind != "" {
		q.where("kind = ?", f.Kind)
	}
	if f.Newest {
		q.orderBy(r.newest)
	} else {
		q.orderBy("chain, seq")
	}
	q.limit(f.Limit)
	return rows(ctx, r, q, scanEntry)
}

// Chains implements [store.Reader].
func (r *reader) Chains(ctx context.Context) ([]store.ChainRow, error) {
	q := selectFrom("id, node, seq, head, mac, authority", "chains")
	q.where("seq > 0") // others are held, and have no head yet
	q.orderBy("id")
	return all(rows(ctx, r, q, func(rows *record, c *store.ChainRow) error {
		return rows.Scan(&c.ID, &c.Node, &c.Seq, &c.Head, &c.MAC, &c.Authority)
	}))
}

// Packages implements [store.Reader].
func (r *reader) Packages(ctx context.Context) ([]store.PackageRow, error) {
	q := selectFrom("digest, source, signer", "packages")
	q.orderBy("digest")
	return all(rows(ctx, r, q, func(rows *record, p *store.PackageRow) error {
		return rows.Scan(&p.Digest, &p.Source, &p.Signer)
	}))
}

// Plugin implements [store.Reader].
func (r *reader) Plugin(ctx context.Context, name, version string) (*store.PluginRow, error) {
	q := selectFrom(pluginColumns, "plugins")
	q.where("name = ?", name)
	q.where("version = ?", version)
	return one(rows(ctx, r, q, scanPlugin))
}

// Plugins implements [store.Reader].
func (r *reader) Plugins(ctx context.Context) ([]store.PluginRow, error) {
	q := selectFrom(pluginColumns, "plugins")
	q.orderBy("name, registered_at, version")
	return all(rows(ctx, r, q, scanPlugin))
}

// Nodes implements [store.Reader].
func (r *reader) Nodes(ctx context.Context) ([]store.NodeRow, error) {
	q := selectFrom("id, addr, epoch, started_at, lease_until", "nodes")
	q.orderBy("started_at, id")
	return all(rows(ctx, r, q, func(rows *record, n *store.NodeRow) error {
		var started, lease int64
		err := rows.Scan(&n.ID, &n.Addr, &n.Epoch, &started, &lease)
		n.StartedAt, n.LeaseUntil = fromMicros(started), fromMicros(lease)
		return err
	}))
}

// rows yields the rows that q selects, as scan reads them.
func rows[T any](ctx context.Context, r *reader, q *query, scan func(*record, *T) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if keepable(q.text.String(), q.args) != nil {
			return // what could not be kept is not there, and a server would end the transaction over it
		}
		fail := func(err error) {
			if r.failed != nil {
				r.failed(err)
			}
			if r.judge != nil {
				err = r.judge(ctx, err)
			}
			var none T
			yield(none, err)
		}
		text := q.text.String()
		if r.calm != nil {
			if store.Keeps(ctx) {
				text += r.keep
			}
			ctx = store.InTenant(r.calm, store.TenantOf(ctx))
		}
		rows, err := r.query(ctx, text, q.args...)
		if err != nil {
			fail(err)
			return
		}
		defer rows.Close()
		record := newRecord(rows, text, r.typed)
		defer record.free()
		for rows.Next() {
			var row T
			if err := scan(record, &row); err != nil {
				fail(err)
				return
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fail(err)
		}
	}
}

// all collects a sequence.
func all[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var got []T
	for row, err := range seq {
		if err != nil {
			return nil, err
		}
		got = append(got, row)
	}
	return got, nil
}

// one returns the first of a sequence, nil if it is empty.
func one[T any](seq iter.Seq2[T, error]) (*T, error) {
	for row, err := range seq {
		if err != nil {
			return nil, err
		}
		return &row, nil
	}
	return nil, nil
}

func scanPlugin(rows *record, p *store.PluginRow) error {
	var manifest, state string
	var registered int64
	if err := rows.Scan(&p.Name, &p.Version, &p.PackageDigest, &p.Path, &manifest, &state, &p.ApprovedBy, &p.Dev, &registered); err != nil {
		return err
	}
	p.Manifest, p.State, p.RegisteredAt = json.RawMessage(manifest), store.PluginState(state), fromMicros(registered)
	return nil
}
