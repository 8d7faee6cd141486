// Package typescript carries the TypeScript SDK inside the host, which bundles
// it together with a plugin's entry file so that an author installs nothing.
package typescript

import "embed"

// Files holds package.json and the sources of the SDK under src.
//
//go:embed src/*.ts package.json
var Files embed.FS
