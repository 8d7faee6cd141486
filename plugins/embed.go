// Package plugins holds the plugins that are part of the host, each a complete
// package like anyone's: registered at the first start, by the same door.
package plugins

import "embed"

// Files are the plugins' directories.
//
//go:embed log_analysis
var Files embed.FS

// Dirs names them.
var Dirs = []string{"log_analysis/pattern_extractor"}
