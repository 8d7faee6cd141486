package plugin

// passing lists the codes of transient failures, which a later retry may not see.
var passing = map[Code]bool{
	CodeOverloaded: true, CodeUnavailable: true, CodeTimeout: true, CodeRateLimited: true, CodeLaunchFailed: true, CodeInternal: true,
}

// Passes reports whether a failure of this code is transient. It does not tell whether the
// call had effects before it failed: see the journal of the call.
func (c Code) Passes() bool { return passing[c] }
