// Package python holds the Python SDK, so that the host can lay it beside the
// plugins it starts without anything being installed.
package python

import "embed"

// Files is the package `mortise`: its modules and py.typed, under mortise/.
//
//go:embed mortise/*.py mortise/py.typed
var Files embed.FS
