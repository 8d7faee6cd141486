// Package plugins holds the plugins that are part of the host, each a complete
// package like anyone's: registered at the first start, by the same door.
package plugins

import "embed"

// Files are the plugins' directories. A directory's embedding leaves out names
// that begin with an underscore, so those that Python needs are named.
//
//go:embed log_analysis network_forensics
//go:embed log_analysis/*/*/__init__.py network_forensics/*/*/__init__.py
var Files embed.FS

// Dirs names them.
var Dirs = []string{
	"log_analysis/event_source_profiler",
	"log_analysis/pattern_extractor",
	"log_analysis/threat_intel_ingester",
	"network_forensics/firewall_log_aggregator",
}
