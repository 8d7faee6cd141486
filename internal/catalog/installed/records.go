// Package installed keeps what the registry knows of plugins, and their packages, in the
// store that the nodes of a host share.
package installed

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

// Records keep the records of the registry in the store, each change together
// with its entry in the ledger.
//
// The store tells plugins apart by name and version. What waits for approval
// beside an approved one of the same version stands under version#digest,
// which is no version of anything.
//
// Where a copied package is follows from its digest on each node, so that the
// path of one says where it is in the store: its archive, "" for none. Rows of
// earlier releases have the directory of the node that registered it.
type Records struct {
	store             Store
	tenant, principal string
	of                string // the tenant whose rows of their own these are; "" for the site's

	mu      sync.Mutex // guards the two below
	version int64
	read    map[int64]int64 // up to which entry each chain was looked through
}

var _ registry.Catalog = (*Records)(nil)

// New returns the records that a store keeps. Changes are in the name of a principal.
func New(st Store, tenant, principal string) *Records {
	return &Records{store: st, tenant: tenant, principal: principal}
}

// NewOf returns the records of a tenant beside the site's own.
func NewOf(st Store, tenant, principal string) *Records {
	return &Records{store: st, tenant: tenant, principal: principal, of: tenant}
}

// rows returns all versions of all plugins.
func (c *Records) rows(ctx context.Context, r reader) ([]pluginRow, error) {
	if c.of != "" {
		return r.TenantPlugins(ctx, c.of)
	}
	return r.Plugins(ctx)
}

// remove reports whether there was such a version to delete.
func (c *Records) remove(tx Tx, name, version string) (bool, error) {
	if c.of != "" {
		return tx.DeleteTenantPlugin(c.of, name, version)
	}
	return tx.DeletePlugin(name, version)
}

// numberOf returns the version that a record has in the store.
func numberOf(r registry.Record) string {
	if r.Beside {
		return r.Version + "#" + r.Digest
	}
	return r.Version
}

func (c *Records) Plugins(ctx context.Context) ([]registry.Record, error) {
	var records []registry.Record
	err := c.store.Snapshot(ctx, func(r reader) error {
		packages, err := r.Packages(ctx)
		if err != nil {
			return err
		}
		known := map[string]packageRow{}
		for _, p := range packages {
			known[p.Digest] = p
		}
		rows, err := c.rows(ctx, r)
		if err != nil {
			return err
		}
		records = make([]registry.Record, 0, len(rows))
		for _, row := range rows {
			number, _, beside := strings.Cut(row.Version, "#")
			record := registry.Record{
				Name: row.Name, Version: number, Beside: beside, ApprovedBy: row.ApprovedBy, Digest: row.PackageDigest, Dev: row.Dev,
				Manifest: row.Manifest, State: registry.State(row.State), RegisteredAt: row.RegisteredAt, Source: known[row.PackageDigest].Source,
			}
			if !row.Dev {
				record.Signer = signed.Signer(known[row.PackageDigest].Signer)
			}
			switch {
			case row.Dev:
				record.Path = row.Path
			case !filepath.IsAbs(row.Path):
				record.Archive = row.Path
			}
			records = append(records, record)
		}
		return nil
	})
	return records, err
}

func (c *Records) Put(ctx context.Context, r registry.Record, kind plugin.EntryKind) error {
	return c.store.Write(ctx, func(tx Tx) error {
		if err := c.put(tx, r); err != nil {
			return err
		}
		body := map[string]any{"digest": r.Digest, "state": r.State, "source": r.Source, "dev": r.Dev}
		if r.Signer != "" {
			body["signer"], body["publisher"] = r.Signer, r.Signer.Publisher()
		}
		return c.note(ctx, tx, kind, r.Name, r.Version, withWords(r, body))
	})
}

// put writes the rows of a record. Of those that wait beside a version there
// is one at most.
func (c *Records) put(tx Tx, r registry.Record) error {
	if r.Beside {
		rows, err := c.rows(context.Background(), tx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Name == r.Name && strings.HasPrefix(row.Version, r.Version+"#") {
				if _, err := c.remove(tx, row.Name, row.Version); err != nil {
					return err
				}
			}
		}
	}
	signer, err := signerOf(tx, r)
	if err != nil {
		return err
	}
	if err := tx.PutPackage(packageRow{Digest: r.Digest, Source: r.Source, Signer: string(signer)}); err != nil {
		return err
	}
	path := r.Archive
	if r.Dev {
		path = r.Path
	}
	row := pluginRow{
		Name: r.Name, Version: numberOf(r), PackageDigest: r.Digest, Path: path, Manifest: json.RawMessage(r.Manifest),
		State: pluginState(r.State), ApprovedBy: r.ApprovedBy, Dev: r.Dev, RegisteredAt: r.RegisteredAt,
	}
	if c.of != "" {
		return tx.PutTenantPlugin(c.of, row)
	}
	return tx.PutPlugin(row)
}

// signerOf returns who signed the files of a record. That they were signed stays true
// where the same files come again without a signature, to another tenant maybe.
func signerOf(tx Tx, r registry.Record) (signed.Signer, error) {
	if r.Signer != "" || r.Dev {
		return r.Signer, nil
	}
	packages, err := tx.Packages(context.Background())
	for _, p := range packages {
		if p.Digest == r.Digest {
			return signed.Signer(p.Signer), err
		}
	}
	return "", err
}

func (c *Records) SetState(ctx context.Context, r registry.Record, state registry.State, kind plugin.EntryKind) error {
	return c.store.Write(ctx, func(tx Tx) error {
		set := func() (bool, error) { return tx.SetPluginState(r.Name, numberOf(r), pluginState(state)) }
		if c.of != "" {
			set = func() (bool, error) {
				return tx.SetTenantPluginState(c.of, r.Name, numberOf(r), pluginState(state))
			}
		}
		found, err := set()
		if err != nil {
			return err
		}
		if !found {
			return gone(r)
		}
		return c.note(ctx, tx, kind, r.Name, r.Version, map[string]any{"state": state})
	})
}

func (c *Records) Delete(ctx context.Context, r registry.Record) error {
	return c.store.Write(ctx, func(tx Tx) error {
		found, err := c.remove(tx, r.Name, numberOf(r))
		if err != nil {
			return err
		}
		if !found {
			return gone(r)
		}
		return c.note(ctx, tx, plugin.EntryPluginDeleted, r.Name, r.Version, map[string]any{"digest": r.Digest})
	})
}

func (c *Records) Approve(ctx context.Context, waited, now registry.Record, a registry.Approval) error {
	return c.store.Write(ctx, func(tx Tx) error {
		found, err := c.remove(tx, waited.Name, numberOf(waited))
		if err != nil {
			return err
		}
		if !found {
			return gone(waited)
		}
		if err := c.put(tx, now); err != nil {
			return err
		}
		body := map[string]any{"approved_by": now.ApprovedBy, "before_digest": a.Before, "digest": a.After, "difference_hash": a.Difference}
		if now.Signer != "" {
			body["signer"] = now.Signer
		}
		return c.note(ctx, tx, plugin.EntryPluginApproved, now.Name, now.Version, withWords(now, body))
	})
}

// Version looks for entries on plugins among those that are new: every change
// of a record has one.
func (c *Records) Version(ctx context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, read := c.read == nil, map[int64]int64{}
	err := c.store.Snapshot(ctx, func(r reader) error {
		chains, err := r.Chains(ctx)
		if err != nil {
			return err
		}
		for _, chain := range chains {
			read[chain.ID] = chain.Seq
			if changed || chain.Seq == c.read[chain.ID] {
				continue
			}
			for _, err := range r.Entries(ctx, entryFilter{Chain: chain.ID, Tenant: c.of, After: c.read[chain.ID], Kind: "plugin.", Limit: 1}) {
				if err != nil {
					return err
				}
				changed = true
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if changed {
		c.version++
	}
	c.read = read
	return c.version, nil
}

// withWords adds to the body of an entry what an administrator has decided about the plugin:
// what was installed for it alone, and what its operations do.
func withWords(r registry.Record, body map[string]any) map[string]any {
	var m struct {
		Environment *plugin.Environment `json:"environment"`
		Operations  []*plugin.Operation `json:"operations"`
	}
	if json.Unmarshal(r.Manifest, &m) != nil {
		return body
	}
	if m.Environment != nil {
		body["environment"] = m.Environment.Digest
	}
	mapped := map[string]*plugin.Mapping{}
	for _, op := range m.Operations {
		if op.Mapped != nil {
			mapped[op.Name] = op.Mapped
		}
	}
	if len(mapped) > 0 {
		body["mapped"] = mapped
	}
	return body
}

func gone(r registry.Record) error {
	return plugin.Errorf(plugin.CodeNotFound, "%s %s is not registered any more", r.Name, r.Version)
}

// note appends the entry of a change.
func (c *Records) note(ctx context.Context, tx Tx, kind plugin.EntryKind, name, version string, body map[string]any) error {
	raw, err := json2.Marshal(body, json2.Deterministic(true))
	if err != nil {
		return fmt.Errorf("recording %s of %s %s: %w", kind, name, version, err)
	}
	tx.Append(plugin.Entry{At: time.Now().UTC(), Tenant: c.tenant, Kind: kind, Subject: name + "@" + version, Principal: registry.Author(ctx, c.principal), Body: json.RawMessage(raw)})
	return nil
}
