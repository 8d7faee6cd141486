// Package python holds the Python SDK, so that the host can lay it beside the
// plugins it starts without anything being installed.
package python

import "embed"

// Files is the package `mortise`, its modules and py.typed, under mortise/; and
// under eventmill/ what Event Mill tools are served with and import.
//
//go:embed mortise/*.py mortise/py.typed
//go:embed eventmill/*.py eventmill/_shim/*.py eventmill/framework/*.py eventmill/framework/*/*.py
var Files embed.FS
