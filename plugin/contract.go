package plugin

// A Contract is what the host has to know of the contract that a plugin was
// written to, as facts. It is not part of the stored manifest: what reads a
// manifest, or loads a stored one, sets it. The zero value is the native contract.
type Contract struct {
	// Limits of the input and of the data of a result, in bytes; 0 for none. The
	// host's own limits apply too.
	MaxInput, MaxOutput int

	// Shim is the directory of the Python SDK whose _boot.py loads and serves the
	// code; empty where the code speaks the protocol itself. With ShimManifest the
	// shim gets the manifest as an argument.
	Shim         string
	ShimManifest bool

	SharesProcess bool // one process serves all plugins of a package, one call at a time
	MaxSummary    int  // characters of a summary that a model is given; 0 for no limit
	Investigates  bool // each call belongs to a session, which is opened where a call names none
	AnyRelease    bool // a reference without a version means a pre-release where there is nothing else

	SchemaLast  bool // policy and missing requirements refuse a call before its schema does
	Verbatim    bool // a result outside the contract's form is passed on as it is, without a check of its schema
	PartialData bool // data stands beside the plugin's own error, or its own timeout
	ShimLimits  bool // the shim reports a result that is too long for the wire, with the host's code as plugin code

	HostMember     string // the member of an input that only the host interprets; empty for none
	ScheduleMember string // the member that tells a call which feed makes it; empty for none
	ResetMember    string // the member that asks a feed to start over, until a run has succeeded; empty for none
	AtOnce         bool   // a feed with an interval makes its first call when it is created

	ListsTools          bool // a model may call only what the manifest lists for it
	OwnAccountsOnly     bool // a call lacks only the caller's own accounts; required identities are advice
	SecretsByCapability bool // the capability alone opens the plugin's own secrets, whatever an operation declares
	DocumentsByHash     bool // a document is known by the hash of its content, not by its identifier alone
}
