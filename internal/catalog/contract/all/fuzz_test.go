package all_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// FuzzRead holds reading to two promises: it never panics, and what it accepts
// keeps every rule that the rest of the host relies on.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"name: a\nversion: 1.0.0\noperations: {x: {kind: operator, effects: [db_write], timeout: slow, input: {type: object}}}\n",
		"name: a\nversion: 1.0.0-rc.1+b\nrunner: {command: [sh, -c, x], protocol: 1}\noperations:\n  x: &x {input: s.json}\n  y: *x\n",
		"name: a\ntype: agent\nversion: 1.0.0\nschemas: {input: {properties: {payload: {$ref: '#/$defs/a'}, trace_context: true}, $defs: {a: {type: string}}}}\n",
		`{"name":"a","version":"1.0.0","runner":{"entry":"plugin.py"},"requires":{"tools":["a/b@^1"]}}`,
		`{"tool_name":"t","version":"1.0","pillar":"p","display_name":"T","description_short":"t","entry_point":"plugin.py","class_name":"T","capabilities":["a_b:c",1],"input_schema":"s.json","timeout_class":"long"}`,
		"a: |\n  b\n? c\n: - d\n  - !!e f\n<<: *g\n", "\xff", "%YAML 1.2\n---\na: 0x10\nb: .inf\nc: 1_000\n",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	dir := f.TempDir()
	for _, name := range []string{"plugin.py", "s.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{}`), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { root.Close() })

	f.Fuzz(func(t *testing.T, manifest string, inJSON bool) {
		file := "manifest.yaml"
		if inJSON {
			file = "manifest.json"
		}
		reading, err := contract.Parse(file, []byte(manifest), contract.Files{Root: root}, contract.Home{})
		if err != nil {
			return
		}
		m := reading.Manifest
		if !contract.Referable(m.Name) || !m.Isolation.Known() || (m.Runner.Entry == "") == (len(m.Runner.Command) == 0) {
			t.Errorf("accepted %+v", m)
		}
		if _, err := semver.StrictNewVersion(m.Version); err != nil {
			t.Errorf("version %q: %v", m.Version, err)
		}
		folded := map[string]bool{}
		for _, op := range m.Operations {
			if !contract.Referable(op.Name) || !op.Kind.Known() || op.Timeout <= 0 || op.Timeout > contract.MaxTimeout || folded[strings.ToLower(op.Name)] {
				t.Errorf("accepted %+v", op)
			}
			folded[strings.ToLower(op.Name)] = true
			if len(op.Effects) > 0 && op.Kind != plugin.Operator {
				t.Errorf("%s has effects", op.Kind)
			}
			for _, raw := range []json.RawMessage{op.Input, op.Output} {
				if _, err := schema.Compile(raw); err != nil {
					t.Errorf("schema %s: %v", raw, err)
				}
			}
			for _, words := range [][]string{op.Effects, op.PolicyTags, op.Permissions, m.Capabilities} {
				for _, word := range words {
					if contract.BadWord(word) != "" {
						t.Errorf("accepted the word %q", word)
					}
				}
			}
		}
		// What was accepted survives being stored.
		stored, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var again plugin.Manifest
		if err := json.Unmarshal(stored, &again); err != nil {
			t.Fatal(err)
		}
		if restored, _ := json.Marshal(&again); string(restored) != string(stored) {
			t.Errorf("stored %s\nrestored %s", stored, restored)
		}
	})
}
