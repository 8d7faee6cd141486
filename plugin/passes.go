package plugin

// passing are the codes of failures that pass by themselves: what failed so may
// work a little later, with nothing changed. It is the one list of them.
var passing = map[Code]bool{
	CodeOverloaded: true, CodeUnavailable: true, CodeTimeout: true, CodeRateLimited: true, CodeLaunchFailed: true, CodeInternal: true,
}

// Passes reports whether a failure of this code passes by itself. It says nothing
// of what the call may have done before: that only its journal tells.
func (c Code) Passes() bool { return passing[c] }
