package contract

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/plugin"
)

// Decode reads a stored manifest and sets the facts of its contract, which are
// not stored: manifests that an older release stored get them too.
func Decode(stored []byte) (*plugin.Manifest, error) {
	m := &plugin.Manifest{}
	if err := json.Unmarshal(stored, m); err != nil {
		return nil, err
	}
	return Complete(m), nil
}

// Complete sets the facts of a manifest's contract.
func Complete(m *plugin.Manifest) *plugin.Manifest {
	if m != nil {
		m.Contract = plugin.Contract{}
		if f, has := Of[Facter](m); has {
			m.Contract = f.Facts()
		}
	}
	return m
}
