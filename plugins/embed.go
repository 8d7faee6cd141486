// Package plugins holds the plugins that are part of the host, each a complete
// package like anyone's: registered at the first start, by the same door.
package plugins

import (
	"embed"
	"io/fs"
)

// A directory's embedding leaves out names that begin with an underscore, so
// those that Python needs are named.
//
//go:embed log_analysis network_forensics threat_modeling
//go:embed log_analysis/*/*/__init__.py network_forensics/*/*/__init__.py threat_modeling/*/*/__init__.py
var embedded embed.FS

// Files are the plugins' directories, with what make build put into their bin
// directories.
var Files fs.FS = runnable{embedded}

// Dirs names them.
var Dirs = []string{
	"log_analysis/context_enriched_analyzer",
	"log_analysis/event_source_profiler",
	"log_analysis/image_analyzer",
	"log_analysis/pattern_extractor",
	"log_analysis/threat_intel_ingester",
	"network_forensics/firewall_log_aggregator",
	"network_forensics/pcap_flow_analyzer",
	"network_forensics/pcap_ip_search",
	"network_forensics/pcap_metadata_summary",
	"threat_modeling/attack_path_generator",
	"threat_modeling/attack_path_renderer",
	"threat_modeling/threat_model_builder",
}
