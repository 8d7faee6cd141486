package interpreter

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/plugin"
)

// shu is the dialect whose class is loaded into an interpreter that serves it.
const shu = "shu"

// shu runs what serves a Shu plugin: given its package, and what the host knows
// of it, since a manifest is not read a second time in Python.
func (i *Interpreters) shu(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	if _, err := inside(pkg.Dir, m.Runner.Entry); err != nil {
		return nil, err
	}
	about, err := aboutShu(m)
	if err != nil {
		return nil, err
	}
	return i.boot(ctx, pkg, "shu", pkg.Dir, about)
}

// aboutShu is a manifest as the server of Shu plugins reads it.
func aboutShu(m *plugin.Manifest) (string, error) {
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
