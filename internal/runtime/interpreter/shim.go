package interpreter

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/plugin"
)

// shim runs the part of the Python SDK that loads and serves a plugin, given its
// package and, where the contract wants it, what the host knows of the plugin: a
// manifest is not read a second time in Python. The entry is only looked for.
func (i *Interpreters) shim(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	if _, err := inside(pkg.Dir, m.Runner.Entry); err != nil {
		return nil, err
	}
	if !m.Contract.ShimManifest {
		return i.boot(ctx, pkg, m, m.Contract.Shim, pkg.Dir)
	}
	about, err := aboutManifest(m)
	if err != nil {
		return nil, err
	}
	return i.boot(ctx, pkg, m, m.Contract.Shim, pkg.Dir, about)
}

// aboutManifest is a manifest as a shim reads it.
func aboutManifest(m *plugin.Manifest) (string, error) {
	about := struct {
		Name         string   `json:"name"`
		Version      string   `json:"version"`
		VersionText  string   `json:"version_text,omitempty"`
		Entry        string   `json:"entry"`
		Module       string   `json:"module"`
		Class        string   `json:"class"`
		Capabilities []string `json:"capabilities"`
		Operations   []string `json:"operations"`
	}{m.Name, m.Version, m.VersionText, m.Runner.Entry, m.Runner.Module, m.Runner.Class, m.Capabilities, nil}
	for _, op := range m.Operations {
		about.Operations = append(about.Operations, op.Name)
	}
	text, err := json.Marshal(about)
	return string(text), err
}
