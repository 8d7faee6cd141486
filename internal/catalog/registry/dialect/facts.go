package dialect

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
		m.Contract = facts[m.Dialect]
	}
	return m
}

var facts = map[string]plugin.Contract{
	EventMill: {Shim: EventMill, SharesProcess: true, MaxSummary: 2000, Investigates: true, AnyRelease: true},
	Shu: {
		MaxInput: 256 << 10, MaxOutput: 1 << 20, // input_too_large, output_too_large
		Shim: Shu, ShimManifest: true, AnyRelease: true,
		SchemaLast: true, Verbatim: true, PartialData: true, ShimLimits: true,
		HostMember: "__host", ScheduleMember: "__schedule_id", ResetMember: "reset_cursor", AtOnce: true,
		ListsTools: true, OwnAccountsOnly: true, SecretsByCapability: true, DocumentsByHash: true,
	},
}
