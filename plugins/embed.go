// Package plugins holds the plugins that are part of the host, each a complete
// package like anyone's: registered at the first start, by the same door.
package plugins

import (
	"embed"
	"io/fs"
)

// A directory's embedding leaves out names that begin with an underscore, so
// those that Python needs are named. The directories bin of the sources are left
// out: their programs are carried compressed.
//
//go:embed log_analysis/*/[A-Zac-z]* network_forensics/*/[A-Zac-z]* threat_modeling/*/[A-Zac-z]*
//go:embed log_analysis/*/*/__init__.py network_forensics/*/*/__init__.py threat_modeling/*/*/__init__.py
var embedded embed.FS

// What make build put there: programs of plugins, compressed.
//
//go:embed all:bin
var packed embed.FS

// places are where programs stand in the packages, by their names in the host.
var places = map[string]string{
	"network_forensics/pcap_metadata_summary/bin/pcapsum": "bin/pcapsum.gz",
}

// Files are the plugins' directories, with the programs that the host carries for them.
var Files fs.FS = withPrograms(embedded, packed)

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
