package plugins_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/plugins"
)

// Each tool is a package by itself and carries its own copy of what reads text,
// JSON and times. The copies stay one text, and none is left out of the host.
func TestToolsCarryTheSameReaders(t *testing.T) {
	t.Parallel()
	first := "log_analysis/event_source_profiler/source_profile"
	for dir, names := range map[string][]string{
		"log_analysis/context_enriched_analyzer/enriched":         {"textlines.py", "tooling.py", "timestamps.py"},
		"log_analysis/threat_intel_ingester/threat_intel":         {"textlines.py", "tooling.py"},
		"network_forensics/firewall_log_aggregator/firewall_logs": {"textlines.py", "tooling.py", "timestamps.py", "jsonrecords.py"},
		"network_forensics/pcap_metadata_summary/pcap_summary":    {"tooling.py"},
		"network_forensics/pcap_ip_search/ip_search":              {"tooling.py"},
		"network_forensics/pcap_flow_analyzer/flows":              {"tooling.py"},
		"threat_modeling/threat_model_builder/threats":            {"tooling.py"},
		"threat_modeling/attack_path_generator/attack_paths":      {"tooling.py"},
		"threat_modeling/attack_path_renderer/rendering":          {"tooling.py"},
		"log_analysis/image_analyzer/image":                       {"tooling.py"},
	} {
		for _, name := range names {
			want, err := os.ReadFile(filepath.Join(first, name))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s/%s differs from %s/%s: change one and copy it", dir, name, first, name)
			}
		}
	}
}

// So do those that only some tools carry, and what makes captures for their tests.
func TestFurtherCopiesAreOneText(t *testing.T) {
	t.Parallel()
	const search = "network_forensics/pcap_ip_search/"
	for copied, first := range map[string]string{
		"network_forensics/pcap_flow_analyzer/flows/captures.py":       search + "ip_search/captures.py",
		"network_forensics/pcap_flow_analyzer/flows/series.py":         search + "ip_search/series.py",
		"network_forensics/pcap_flow_analyzer/tests/traffic.py":        search + "tests/traffic.py",
		"log_analysis/context_enriched_analyzer/enriched/series.py":    search + "ip_search/series.py",
		"threat_modeling/attack_path_generator/attack_paths/attack.py": "log_analysis/threat_intel_ingester/threat_intel/attack.py",
		"threat_modeling/threat_model_builder/threats/attack.py":       "log_analysis/threat_intel_ingester/threat_intel/attack.py",
		"log_analysis/context_enriched_analyzer/enriched/attack.py":    "log_analysis/threat_intel_ingester/threat_intel/attack.py",
	} {
		want, err := os.ReadFile(first)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(copied)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from %s: change one and copy it", copied, first)
		}
	}
}

// TestTheTwelveToolsShip holds the list of what ships against the tools that the
// contract of Event Mill places in its tree.
func TestTheTwelveToolsShip(t *testing.T) {
	t.Parallel()
	want := []string{
		"log_analysis/context_enriched_analyzer", "log_analysis/event_source_profiler", "log_analysis/image_analyzer", "log_analysis/pattern_extractor",
		"log_analysis/threat_intel_ingester", "network_forensics/firewall_log_aggregator", "network_forensics/pcap_flow_analyzer",
		"network_forensics/pcap_ip_search", "network_forensics/pcap_metadata_summary", "threat_modeling/attack_path_generator",
		"threat_modeling/attack_path_renderer", "threat_modeling/threat_model_builder",
	}
	if !slices.Equal(plugins.Dirs, want) {
		t.Errorf("%q ship, want %q", plugins.Dirs, want)
	}
}

func TestEveryModuleOfAToolIsEmbedded(t *testing.T) {
	t.Parallel()
	for _, dir := range plugins.Dirs {
		modules, err := filepath.Glob(filepath.Join(dir, "*", "*.py"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range modules {
			if _, err := plugins.Files.Open(filepath.ToSlash(path)); err != nil {
				t.Errorf("%s is not embedded: %v", path, err)
			}
		}
	}
}
