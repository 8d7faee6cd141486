package plugins_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/catalog/scaffold"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/plugins"
)

// TestWhatIsShippedRunsInAFullCage calls each plugin of this directory and one
// made from each template, and reads in the ledger which walls stood.
func TestWhatIsShippedRunsInAFullCage(t *testing.T) {
	t.Setenv("GOPROXY", "off") // before a template in Go is compiled
	machine, err := sandbox.New(sandbox.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	if r := machine.Report(); r.Level != sandbox.Full {
		t.Skipf("not run: this machine reaches isolation level %s; it lacks %+v", r.Level, r.Missing())
	}
	s := openScene(t)
	names := shipped(t)
	for operation, example := range s.examples() {
		s.must(operation, s.example(example.dir, example.name), operation, nil)
	}
	s.reads("pattern_extractor", "log_analysis/pattern_extractor/examples/sample.log", "")
	for tool, asked := range investigation {
		s.reads(tool, asked.file, asked.members)
	}
	if _, err := os.Stat("network_forensics/pcap_metadata_summary/bin/pcapsum"); err == nil {
		s.reads("pcap_metadata_summary", "network_forensics/pcap_metadata_summary/examples/sample.pcap", "")
	} else {
		t.Log("not run: pcap_metadata_summary: its reader is not built (make build)")
		names = slices.DeleteFunc(names, func(name string) bool { return name == "pcap_metadata_summary" })
	}
	for _, lang := range scaffold.Languages {
		if lang == "hook" { // runs in the host's own engine, which has neither files nor network
			continue
		}
		name := "made_in_" + lang
		if s.made(name, lang) {
			s.must(name, `{"name":"Ada"}`, "", nil)
			names = append(names, name)
		}
	}
	levels := s.levels()
	for _, name := range names {
		if level := levels[name]; level != string(sandbox.Full) {
			t.Errorf("a call of %s is on record with isolation %q", name, level)
		}
	}
	if len(names) < 14 {
		t.Errorf("only %q were called", names)
	}
}

var nameOfManifest = regexp.MustCompile(`(?m)^\s*"?(?:tool_)?name"?: "?([A-Za-z._]+)`)

// shipped are the names of the plugins that the host carries, and of the
// outreach set. One that is added to them has to be called above.
func shipped(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob("outreach/*/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range plugins.Dirs {
		found, err := filepath.Glob(filepath.Join(dir, "manifest.*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s has no manifest, or several: %q", dir, found)
		}
		paths = append(paths, found[0])
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := nameOfManifest.FindSubmatch(raw)
		if name == nil {
			t.Fatalf("%s has no name", path)
		}
		names = append(names, string(name[1]))
	}
	return names
}

type exampleFile struct{ dir, name string }

// examples has one example of each operation of the outreach set.
func (s *scene) examples() map[string]exampleFile {
	s.Helper()
	paths, err := filepath.Glob("outreach/*/examples/*.input.json")
	if err != nil {
		s.Fatal(err)
	}
	found := map[string]exampleFile{}
	for _, path := range paths {
		dir := filepath.Base(filepath.Dir(filepath.Dir(path)))
		name := strings.TrimSuffix(filepath.Base(path), ".input.json")
		operation := name[:strings.LastIndex(name, ".")]
		operation = map[string]string{ // the others are called by the name of their one operation
			"chat_adapter": "Chat.Adapter/", "examples_adapter": "Examples.Adapter/", "gmail_adapter": "Gmail.Adapter/", "backend_adapter": "Backend.Adapter/",
		}[dir] + operation
		found[operation] = exampleFile{dir, name}
	}
	return found
}

// investigation has a file for each of the tools of investigations, and what
// else they are asked.
var investigation = map[string]struct{ file, members string }{
	"context_enriched_analyzer": {"log_analysis/context_enriched_analyzer/examples/sample.log", `"iocs":["bad.example"],`},
	"event_source_profiler":     {"log_analysis/event_source_profiler/examples/sample.log", ""},
	"threat_model_builder":      {"threat_modeling/threat_model_builder/examples/shop.json", ""},
	"attack_path_generator":     {"threat_modeling/attack_path_generator/examples/graph.json", ""},
	"attack_path_renderer":      {"threat_modeling/attack_path_renderer/examples/paths.json", ""},
	"image_analyzer":            {"log_analysis/image_analyzer/examples/sample.jpg", ""},
	"threat_intel_ingester":     {"log_analysis/threat_intel_ingester/examples/sample.txt", ""},
	"firewall_log_aggregator":   {"network_forensics/firewall_log_aggregator/examples/sample.log", ""},
	"pcap_flow_analyzer":        {"network_forensics/pcap_flow_analyzer/examples/sample.pcap", ""},
	"pcap_ip_search":            {"network_forensics/pcap_ip_search/examples/sample.pcap", `"addresses":["198.51.100.7"],`},
}

// reads calls a tool with a file of this directory that is handed on to it, and
// with further members of its input, each followed by a comma.
func (s *scene) reads(operation, file, members string) {
	s.Helper()
	given, err := handed.Open(file)
	if err != nil {
		s.Fatal(err)
	}
	res, err := s.app.Kernel.Call(s.Context(), plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Operation: operation, Input: json.RawMessage(fmt.Sprintf(`{%s"artifacts":[{"artifact_id":%q}]}`, members, given.Handle)), Files: []plugin.File{given},
	})
	if err != nil || res.Status != plugin.Succeeded {
		s.Fatalf("%s: %s, %v", operation, res.Status, err)
	}
}

// made writes a plugin from a template and links it, as mortise new does. It
// reports false where what the template needs is not installed.
func (s *scene) made(name, lang string) bool {
	s.Helper()
	needs := map[string]string{"python": "python3", "ts": "node", "go": "go", "command": "sh"}[lang]
	if _, err := exec.LookPath(needs); err != nil {
		s.Logf("not run: the template in %s: %s is not installed", lang, needs)
		return false
	}
	dir := filepath.Join(s.TempDir(), name)
	if _, err := scaffold.New(dir, name, lang); err != nil {
		s.Fatal(err)
	}
	report, err := s.app.Registry.Register(s.Context(), dir, registry.RegisterOptions{Dev: true, Enable: true})
	if err != nil {
		s.Fatal(err)
	}
	if err := report.Registered[0].NotEnabled; err != nil {
		s.Fatal(err)
	}
	return true
}

// levels has the isolation of every plugin's calls that succeeded, as the
// ledger has it; where two calls differ, both.
func (s *scene) levels() map[string]string {
	s.Helper()
	entries, err := s.app.Ledger.List(s.Context(), ledger.Filter{Kind: "call."})
	if err != nil {
		s.Fatal(err)
	}
	levels := map[string]string{}
	for _, e := range entries {
		var rec plugin.CallRecord
		if err := json.Unmarshal(e.Body, &rec); err != nil {
			s.Fatal(err)
		}
		if rec.Status != plugin.Succeeded || rec.Cached { // a tool's answer that was there already: nothing ran
			continue
		}
		switch level, known := levels[rec.Plugin]; {
		case !known:
			levels[rec.Plugin] = rec.Isolation
		case level != rec.Isolation:
			levels[rec.Plugin] = level + ", " + rec.Isolation
		}
	}
	return levels
}
