package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/registry"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A catalog keeps the registry's records in the store, each change together
// with its entry in the ledger.
type catalog struct {
	store             store.Store
	tenant, principal string
}

var _ registry.Catalog = catalog{}

func (c catalog) Plugins(ctx context.Context) ([]registry.Record, error) {
	var records []registry.Record
	err := c.store.Snapshot(ctx, func(r store.Reader) error {
		packages, err := r.Packages(ctx)
		if err != nil {
			return err
		}
		sources := map[string]string{}
		for _, p := range packages {
			sources[p.Digest] = p.Source
		}
		rows, err := r.Plugins(ctx)
		if err != nil {
			return err
		}
		records = make([]registry.Record, 0, len(rows))
		for _, row := range rows {
			records = append(records, registry.Record{
				Name: row.Name, Version: row.Version, Digest: row.PackageDigest, Path: row.Path, Dev: row.Dev,
				Manifest: row.Manifest, State: registry.State(row.State), RegisteredAt: row.RegisteredAt, Source: sources[row.PackageDigest],
			})
		}
		return nil
	})
	return records, err
}

func (c catalog) Put(ctx context.Context, r registry.Record, kind plugin.EntryKind) error {
	return c.store.Write(ctx, func(tx store.Tx) error {
		if err := tx.PutPackage(store.PackageRow{Digest: r.Digest, Source: r.Source}); err != nil {
			return err
		}
		if err := tx.PutPlugin(store.PluginRow{
			Name: r.Name, Version: r.Version, PackageDigest: r.Digest, Path: r.Path, Manifest: json.RawMessage(r.Manifest),
			State: store.PluginState(r.State), ApprovedBy: c.principal, Dev: r.Dev, RegisteredAt: r.RegisteredAt,
		}); err != nil {
			return err
		}
		return c.note(tx, kind, r.Name, r.Version, map[string]any{"digest": r.Digest, "state": r.State, "source": r.Source, "dev": r.Dev})
	})
}

func (c catalog) SetState(ctx context.Context, name, version string, state registry.State, kind plugin.EntryKind) error {
	return c.store.Write(ctx, func(tx store.Tx) error {
		found, err := tx.SetPluginState(name, version, store.PluginState(state))
		if err != nil {
			return err
		}
		if !found {
			return gone(name, version)
		}
		return c.note(tx, kind, name, version, map[string]any{"state": state})
	})
}

func (c catalog) Delete(ctx context.Context, name, version string) error {
	return c.store.Write(ctx, func(tx store.Tx) error {
		found, err := tx.DeletePlugin(name, version)
		if err != nil {
			return err
		}
		if !found {
			return gone(name, version)
		}
		return c.note(tx, plugin.EntryPluginDeleted, name, version, map[string]any{})
	})
}

func gone(name, version string) error {
	return plugin.Errorf(plugin.CodeNotFound, "%s %s is not registered any more", name, version)
}

// note appends the entry of a change.
func (c catalog) note(tx store.Tx, kind plugin.EntryKind, name, version string, body map[string]any) error {
	raw, err := json2.Marshal(body, json2.Deterministic(true))
	if err != nil {
		return fmt.Errorf("recording %s of %s %s: %w", kind, name, version, err)
	}
	tx.Append(plugin.Entry{At: time.Now().UTC(), Tenant: c.tenant, Kind: kind, Subject: name + "@" + version, Principal: c.principal, Body: json.RawMessage(raw)})
	return nil
}
