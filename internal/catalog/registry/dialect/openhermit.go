package dialect

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// scriptRunner is the kind of runner of plugins that the host itself runs, in an
// engine.
const scriptRunner = "script"

// scriptEntry is the file that such a plugin is, where its manifest names none.
const scriptEntry = "index.ts"

// scriptExtensions are those that such a file may have.
var scriptExtensions = []string{".ts", ".js", ".mjs"}

// openHermitKeys are those that a manifest may have: the contract shows the file
// and does not fix what stands in it.
var openHermitKeys = []string{"id", "name", "version", "description", "entry", "priority", "failureMode", "before", "after", "hooks", "author", "license"}

// isOpenHermit reports whether a manifest.json is one of plugins and hooks: it
// stands beside a script, and has no key that any other contract needs.
func (p *page) isOpenHermit(top value) bool {
	if p.file != eventMillManifest {
		return false
	}
	entry, isText := top.get("entry").is.(string)
	if !isText {
		entry = scriptEntry
	}
	_, err := p.files.regular(entry)
	return err == nil
}

// openHermit reads a manifest of plugins and hooks (Phase 2). What the plugin
// hears and which tools it adds its code says when it is registered.
func (p *page) openHermit(top value) *plugin.Manifest {
	for _, key := range top.keys() {
		if !slices.Contains(openHermitKeys, key) {
			top.get(key).note("the contract has no such key, and nothing is made of it")
		}
	}
	m := &plugin.Manifest{
		Name:         top.hermitName(p.home),
		Version:      "0.1.0",
		DisplayName:  top.get("name").looseText(),
		Description:  top.get("description").looseText(),
		Dialect:      OpenHermit,
		Isolation:    plugin.IsolationAgent,
		Runner:       plugin.Runner{Kind: scriptRunner, Entry: scriptEntry, Protocol: "2"},
		Capabilities: []string{"log"},
	}
	if v := top.get("version"); v.there {
		m.Version = v.looseVersion()
	}
	if e := top.get("entry"); e.there {
		m.Runner.Entry = e.scriptEntry()
	}
	m.Default = plugin.Hook{
		Priority:    top.get("priority").finite(plugin.HookPriority),
		FailureMode: plugin.FailureMode(top.get("failureMode").oneOf("", string(plugin.FailSkip), string(plugin.FailTurn))),
		Before:      top.get("before").words(),
		After:       top.get("after").words(),
	}
	return m
}

// hermitName returns the plugin's id: what the manifest calls it, or the name of
// its directory.
func (v value) hermitName(at home) string {
	for _, key := range []string{"id", "name"} {
		if text, isText := v.get(key).is.(string); isText && ValidName(text) {
			return text
		}
	}
	name := filepath.Base(filepath.Join(at.tree, filepath.FromSlash(at.place)))
	if !ValidName(name) {
		v.get("id").problem("neither id nor name is a name, and %q is none: %s", clip(name), nameRule)
	}
	return name
}

// scriptEntry reads the name of a script in the package.
func (v value) scriptEntry() string {
	name := v.word()
	if name == "" {
		return ""
	}
	if !slices.Contains(scriptExtensions, filepath.Ext(name)) {
		v.problem("%s is none of %s", clip(name), strings.Join(scriptExtensions, ", "))
		return ""
	}
	if _, err := v.page.files.regular(name); err != nil {
		v.problem("%s: %v", clip(name), err)
		return ""
	}
	return strings.TrimPrefix(name, "./")
}

// scriptDescribed returns m with what a script says of itself: it alone knows
// what it hears and which tools it adds. Neither may be more than a tool may.
func (c *checker) scriptDescribed(m *plugin.Manifest, d Described) *plugin.Manifest {
	merged := *m
	merged.Hooks = c.hooked(d.Hooks)
	merged.Operations = nil
	if len(d.Operations) > 0 {
		merged.Operations = c.operations(d)
	}
	for _, op := range merged.Operations {
		if len(op.Effects) > 0 || op.Kind != plugin.Tool {
			c.problem(child("/operations", op.Name), "what a script adds is a tool, and has no effects")
		}
		op.NoCache = true // it may remember
	}
	if len(merged.Hooks) == 0 && len(merged.Operations) == 0 {
		c.problem("", "register neither hears an event nor adds a tool")
	}
	return &merged
}

func itoa(n int) string { return strconv.Itoa(n) }

// Guards reports whether one of the hooks is to veto, and did not say in so many
// words that it may be skipped.
func Guards(m *plugin.Manifest) bool {
	for _, h := range m.Hooks {
		if e, found := event.Find(h.Event); found && e.Shape == event.Veto && h.FailureMode != plugin.FailSkip {
			return true
		}
	}
	return false
}
