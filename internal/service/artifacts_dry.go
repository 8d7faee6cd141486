package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// An artifactsKey names the artifacts that a dry run would have registered.
type artifactsKey struct{ tenant, session string }

// registerDry reads the file as registering it would, and leaves it where it is:
// the plugin that made it finds it there.
func (g *grant) registerDry(ctx context.Context, in registration) (any, *plugin.Change, error) {
	had, there, err := g.registering(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	if there != nil {
		return refOf(there), nil, nil
	}
	file, err := g.open(in.Path, had)
	if err != nil {
		return nil, nil, err
	}
	defer file.close()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return nil, nil, err
	}
	a := g.artifactOf(in, had, file)
	if slices.ContainsFunc(had, func(one Artifact) bool { return a.ID != "" && one.ID == a.ID }) {
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: the session has another artifact %s already", artifactsRegister, a.ID)
	}
	a.Hash, a.Size, a.Path = hex.EncodeToString(hash.Sum(nil)), size, path.Join(g.scratchDir, file.name)
	if a.ID == "" {
		a.ID = "art_" + hashOf(g.call.ID + "\n" + file.name + "\n" + a.Hash)[:8]
	}
	if a.Type == "" {
		a.Type = g.typeOf(a.Name)
	}
	key := artifactsKey{g.call.Tenant, g.call.Session}
	all, _ := keptDry[[]Artifact](g, key)
	if err := g.keep(artifactsRegister, key, append(slices.Clone(all), a), len(all)*512); err != nil {
		return nil, nil, err
	}
	after := shown(map[string]any{"type": a.Type, "name": a.Name, "size": size, "sha256": a.Hash})
	return refOf(&a), &plugin.Change{Target: a.Name, After: after, Summary: "registered in the session"}, nil
}
