package check_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/check"
)

func TestAShuPluginThatNoCallCouldRunIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"manifest.py": `PLUGIN_MANIFEST = {"name": "on_trial", "version": "1.0.0", "module": "plugins.on_trial.plugin:P", "allowed_feed_ops": ["sync"]}` + "\n",
		"plugin.py": `class P:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["look"]}}, "required": ["op", "gone"]}
    async def execute(self, params, context, host):
        return {"status": "success"}
`,
	})
	got := strings.Join(outcomes(t, dir, check.Options{}), "\n")
	for _, want := range []string{
		"its schema requires gone, which is none of its properties",
		"sync is not in the enum of op in its schema",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

// TestWhatTheClassOfAShuPluginSaysOtherwiseIsFound: another name or version is a
// warning, since the manifest's count, and a schema that raises harms only where
// none stands in its place.
func TestWhatTheClassOfAShuPluginSaysOtherwiseIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, want, not string }{
		"with another schema": {`return {"type": "object", "title": "T", "description": "D", "properties": {"op": {"type": "string", "enum": ["look"]}}}`,
			"warn on_trial: host: plugin.py:2: class-name: the class P says name 'trial', and the manifest 'on_trial', which counts", "get_schema_for_op"},
		"with none": {`return None`, "fail on_trial: host: plugin.py:8: schema: get_schema_for_op('look') raises KeyError: 'look'", "could not be rehearsed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, map[string]string{
				"manifest.py": `PLUGIN_MANIFEST = {"name": "on_trial", "version": "1.0", "module": "plugins.on_trial.plugin:P", "op_auth": {"look": {}}}` + "\n",
				"plugin.py": `class P:
    name = "trial"
    version = "1.0"

    def get_schema(self):
        ` + c.schema + `
    def get_schema_for_op(self, op):
        return {}[op]
    async def execute(self, params, context, host):
        return {"status": "success", "data": params["op"]}
`,
			})
			got := strings.Join(outcomes(t, dir, check.Options{}), "\n")
			if !strings.Contains(got, c.want) || strings.Contains(got, c.not) || strings.Contains(got, "class-version") {
				t.Errorf("there is no %q, or a %q, in\n%s", c.want, c.not, got)
			}
		})
	}
}

// TestWhatAShuPluginWouldNotGetOfItsHostIsFound by rule, file and line, whether
// a run of its operations gets there or not, and without any effect.
func TestWhatAShuPluginWouldNotGetOfItsHostIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"manifest.py": `PLUGIN_MANIFEST = {"name": "on_trial", "version": "1.0.0", "module": "plugins.on_trial.plugin:P", "capabilities": ["http", "kb"]}` + "\n",
		"plugin.py": `class P:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["look", "find"]}}}

    async def execute(self, params, context, host):
        if params["op"] == "find":
            return await host.kb.search_chunks(query="lamp")
        if context is None:
            host.settings
        return {"status": "success", "data": await host.secrets.get("k")}
`,
	})
	got := strings.Join(outcomes(t, dir, check.Options{}), "\n")
	for _, want := range []string{
		"fail on_trial: host: plugin.py:7: arguments: ",
		"fail on_trial: host: plugin.py:9: host-attribute: the host has no attribute 'settings'",
		"fail on_trial: host: plugin.py:10: capability: Host capability 'secrets' not declared in plugin manifest",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

// TestAShuPluginWithoutExecuteDoesNotStart: a class that no call could run is refused, not listed.
func TestAShuPluginWithoutExecuteDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"manifest.py":        `PLUGIN_MANIFEST = {"name": "on_trial", "version": "1.0.0", "module": "on_trial.plugin:P"}` + "\n",
		"on_trial/plugin.py": "class P:\n    pass\n",
	})
	got := strings.Join(outcomes(t, dir, check.Options{}), "\n")
	for _, want := range []string{
		"starts and describes itself: plugin_error: ", "the class P has no execute: no operation can run",
		`: manifest: manifest.py: at /module: "on_trial.plugin" is not below plugins.DIRECTORY`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}
