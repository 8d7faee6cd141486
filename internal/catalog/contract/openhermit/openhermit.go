// Package openhermit reads manifests of plugins and hooks: scripts that the host
// runs itself.
package openhermit

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// Name is the name of the contract.
const Name = "openhermit"

// Contract is the contract of plugins and hooks.
type Contract struct{}

var (
	_ contract.Reader    = Contract{}
	_ contract.Describer = Contract{}
	_ contract.Merger    = Contract{}
)

// Name implements [contract.Contract].
func (Contract) Name() string { return Name }

// Form implements [contract.Reader].
func (Contract) Form() string { return "of plugins and hooks (manifest.json beside index.ts)" }

// NeedsDescribe implements [contract.Describer]: the code alone knows what it hears
// and which tools it adds.
func (Contract) NeedsDescribe(m *plugin.Manifest) bool { return m.Hooks == nil && m.Operations == nil }

// scriptEntry is the file that such a plugin is, where its manifest names none.
const scriptEntry = "index.ts"

// scriptExtensions are those that such a file may have.
var scriptExtensions = []string{".ts", ".js", ".mjs"}

// openHermitKeys are those that a manifest may have: the contract shows the file
// and does not fix what stands in it.
var openHermitKeys = []string{"id", "name", "version", "description", "entry", "priority", "failureMode", "before", "after", "hooks", "author", "license"}

// Recognizes implements [contract.Reader]: a manifest.json stands beside a script,
// and has no key that any other contract needs.
func (Contract) Recognizes(top contract.Value) bool {
	if top.Page.File != contract.ManifestJSON {
		return false
	}
	entry, isText := top.Get("entry").Is.(string)
	if !isText {
		entry = scriptEntry
	}
	_, err := top.Page.Files.Regular(entry)
	return err == nil
}

// Read implements [contract.Reader] (Phase 2). What the plugin
// hears and which tools it adds its code says when it is registered.
func (Contract) Read(top contract.Value) *plugin.Manifest {
	for _, key := range top.Keys() {
		if !slices.Contains(openHermitKeys, key) {
			top.Get(key).Note("the contract has no such key, and nothing is made of it")
		}
	}
	m := &plugin.Manifest{
		Name:         nameOf(top, top.Page.Home),
		Version:      "0.1.0",
		DisplayName:  top.Get("name").LooseText(),
		Description:  top.Get("description").LooseText(),
		Dialect:      Name,
		Isolation:    plugin.IsolationAgent,
		Runner:       plugin.Runner{Kind: contract.ScriptRunner, Entry: scriptEntry, Protocol: "2"},
		Capabilities: []string{"log"},
	}
	if v := top.Get("version"); v.There {
		m.Version = v.LooseVersion()
	}
	if e := top.Get("entry"); e.There {
		m.Runner.Entry = entryOf(e)
	}
	m.Default = plugin.Hook{
		Priority:    top.Get("priority").Finite(plugin.HookPriority),
		FailureMode: plugin.FailureMode(top.Get("failureMode").OneOf("", string(plugin.FailSkip), string(plugin.FailTurn))),
		Before:      top.Get("before").Words(),
		After:       top.Get("after").Words(),
	}
	return m
}

// nameOf returns the plugin's id: what the manifest calls it, or the name of
// its directory.
func nameOf(v contract.Value, at contract.Home) string {
	for _, key := range []string{"id", "name"} {
		if text, isText := v.Get(key).Is.(string); isText && contract.ValidName(text) {
			return text
		}
	}
	name := filepath.Base(filepath.Join(at.Tree, filepath.FromSlash(at.Place)))
	if !contract.ValidName(name) {
		v.Get("id").Problem("neither id nor name is a name, and %q is none: %s", contract.Clip(name), contract.NameRule)
	}
	return name
}

// entryOf reads the name of a script in the package.
func entryOf(v contract.Value) string {
	name := v.Word()
	if name == "" {
		return ""
	}
	if !slices.Contains(scriptExtensions, filepath.Ext(name)) {
		v.Problem("%s is none of %s", contract.Clip(name), strings.Join(scriptExtensions, ", "))
		return ""
	}
	if _, err := v.Page.Files.Regular(name); err != nil {
		v.Problem("%s: %v", contract.Clip(name), err)
		return ""
	}
	return strings.TrimPrefix(name, "./")
}

// Merge implements [contract.Merger]: m with what a script says of itself: it alone knows
// what it hears and which tools it adds. Neither may be more than a tool may.
func (Contract) Merge(c *contract.Validator, m *plugin.Manifest, d contract.Described) *plugin.Manifest {
	merged := *m
	merged.Hooks = c.Hooks(d.Hooks)
	merged.Operations = nil
	if len(d.Operations) > 0 {
		merged.Operations = c.Operations(d)
	}
	for _, op := range merged.Operations {
		if len(op.Effects) > 0 || op.Kind != plugin.Tool {
			c.Problem(contract.Child("/operations", op.Name), "what a script adds is a tool, and has no effects")
		}
		op.NoCache = true // it may remember
	}
	if len(merged.Hooks) == 0 && len(merged.Operations) == 0 {
		c.Problem("", "register neither hears an event nor adds a tool")
	}
	return &merged
}
