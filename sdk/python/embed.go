// Package python holds the Python SDK, so that the host can lay it beside the
// plugins it starts without anything being installed.
package python

import "embed"

// Files is the package `mortise`, its modules and py.typed, under mortise/; and
// under eventmill/ and shu/ what Event Mill tools and Shu plugins are served with
// and import.
//
//go:embed mortise/*.py mortise/py.typed
//go:embed eventmill/*.py eventmill/_shim/*.py eventmill/_spawned/*.py eventmill/framework/*.py eventmill/framework/*/*.py
//go:embed shu/*.py shu/_shim/*.py shu/shu_plugin_sdk/*.py shu/shu_plugin_sdk/py.typed
var Files embed.FS
