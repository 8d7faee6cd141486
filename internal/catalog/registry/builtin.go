package registry

import (
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/core/schema"
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
			b[name] = plugin.NewTarget(m, op, plugin.Package{Digest: "host:" + m.Version}, in, out)
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

// hostName is what policy calls the host's own parts by, such as mortise.ledger: who
// may configure one of these may not configure a package of that name.
const hostName = "mortise"

// refuse refuses a package that has the name of one of these or of a part of the host,
// letter case aside.
func (b builtin) refuse(name string) error {
	first, _, _ := strings.Cut(name, ".")
	taken := strings.EqualFold(first, hostName)
	for _, t := range b {
		taken = taken || strings.EqualFold(t.Manifest.Name, name)
	}
	if taken {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s is the name of a part of the host; choose another", name)
	}
	return nil
}
