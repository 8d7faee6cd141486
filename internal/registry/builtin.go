package registry

import (
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// builtin are the plugins that the host implements itself. They have no files, are in
// no list, and their names are reserved.
type builtin map[string]*plugin.Target // by plugin/operation

// newBuiltin compiles their schemas.
func newBuiltin(manifests []*plugin.Manifest) (builtin, error) {
	b := builtin{}
	for _, m := range manifests {
		for _, op := range m.Operations {
			name := m.Name + "/" + op.Name
			in, err := schema.Compile(op.Input)
			if err != nil {
				return nil, fmt.Errorf("the input schema of %s: %w", name, err)
			}
			out, err := schema.Compile(op.Output)
			if err != nil {
				return nil, fmt.Errorf("the output schema of %s: %w", name, err)
			}
			b[name] = &plugin.Target{Manifest: m, Operation: op, Package: plugin.Package{Digest: "host:" + m.Version}, Input: in, Output: out}
		}
	}
	return b, nil
}

// find returns the operation that a reference means, nil if it is none of these.
// There is one version of each.
func (b builtin) find(ref string) *plugin.Target {
	name, versions, _ := strings.Cut(ref, "@")
	t := b[name]
	if t == nil || versions != "" && strings.TrimPrefix(versions, "=") != t.Manifest.Version {
		return nil
	}
	return t
}

// owns reports whether a plugin of that name is one of these, letter case aside.
func (b builtin) owns(name string) bool {
	for _, t := range b {
		if strings.EqualFold(t.Manifest.Name, name) {
			return true
		}
	}
	return false
}
