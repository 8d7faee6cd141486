package mortise

import "embed"

// Source is the source of this package. A new plugin in Go gets a copy of it,
// so that it builds where this module cannot be fetched.
//
//go:embed *.go
var Source embed.FS
