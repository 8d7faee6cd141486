package reference

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func get(t *testing.T, d *Data, key string) string {
	t.Helper()
	value, found, err := d.Get(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	if !found {
		return "-"
	}
	return string(value)
}

func TestKeysAreKeptAndFound(t *testing.T) {
	t.Parallel()
	d := Open(filepath.Join(t.TempDir(), "reference"))
	if keys, err := d.List(); err != nil || len(keys) != 1 || keys[0].Form != Bundled || get(t, d, "a") != "-" {
		t.Errorf("before anything is there: %v %v", keys, err)
	}
	for _, add := range []struct{ key, name, text, want string }{
		{"hosts", "hosts.csv", "name,ip\na,192.0.2.1\n", `"name,ip\na,192.0.2.1\n"`},
		{"notes", "notes.md", "caf\u00e9\n", `"café\n"`},
		{"table", "x.json", "\xef\xbb\xbf{ \"a\": [1, 2.50] }\n", `{"a":[1,2.50]}`},
		{"table", "y.txt", "now text", `"now text"`},
	} {
		key, err := d.Add(add.key, file(t, add.name, add.text))
		if err != nil || key.Key != add.key || get(t, d, add.key) != add.want {
			t.Errorf("%s: %+v %v, found %s", add.name, key, err, get(t, d, add.key))
		}
	}
	keys, err := d.List()
	if err != nil || len(keys) != 4 || keys[0].Key != "hosts" || keys[0].Form != "csv" || keys[1].Form != Bundled || keys[3].Form != "txt" {
		t.Errorf("%+v %v", keys, err)
	}
	if err := d.Remove("hosts"); err != nil || get(t, d, "hosts") != "-" {
		t.Errorf("removed: %v", err)
	}
	if err := d.Remove("hosts"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("removed again: %v", err)
	}
	for name, text := range map[string]string{"twice.json": `{"a":1,"a":2}`, "cut.json": `{"a":`, "two.json": `1 2`, "binary.txt": "\xff\xfe"} {
		if _, err := d.Add("bad", file(t, name, text)); plugin.CodeOf(err) != plugin.CodeInvalidInput || get(t, d, "bad") != "-" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.Add("bad", t.TempDir()); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("a directory: %v", err)
	}
}

// TestNoKeyLeadsOut: what is asked for is a name in the directory and nothing else.
func TestNoKeyLeadsOut(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "reference")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"secret.txt": "secret", "reference/.hidden.txt": "hidden"} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.txt", filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := Open(dir)
	for _, key := range []string{"../secret", "..", ".", "", ".hidden", "a/b", "a\\b", "a\x00", strings.Repeat("k", 129), "-x", "/etc/passwd"} {
		if value, found, err := d.Get(t.Context(), key, 1<<20); found || err != nil {
			t.Errorf("%q: %s %v", key, value, err)
		}
		if _, err := d.Add(key, file(t, "x.txt", "x")); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("add %q: %v", key, err)
		}
	}
	for _, key := range []string{"link", "folder"} {
		if value, found, err := d.Get(t.Context(), key, 1<<20); found || plugin.CodeOf(err) != plugin.CodeUnavailable {
			t.Errorf("%s: %s %v", key, value, err)
		}
	}
}

func TestWhatDoesNotFitIsAnError(t *testing.T) {
	t.Parallel()
	d := Open(t.TempDir())
	if _, err := d.Add("long", file(t, "x.txt", strings.Repeat("x", 1000))); err != nil {
		t.Fatal(err)
	}
	if _, found, err := d.Get(t.Context(), "long", 999); found || plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "999") {
		t.Errorf("%v %v", found, err)
	}
}

const bundle = `{
 "type": "bundle", "id": "bundle--1", "spec_version": "2.0",
 "objects": [
  {"type": "x-mitre-matrix", "name": "Enterprise ATT&CK"},
  {"type": "attack-pattern", "name": "Phishing", "x_mitre_domains": ["enterprise-attack"],
   "kill_chain_phases": [{"kill_chain_name": "mitre-attack", "phase_name": "initial-access"}, {"kill_chain_name": "other", "phase_name": "x"}],
   "external_references": [{"source_name": "capec", "external_id": "CAPEC-98"}, {"source_name": "mitre-attack", "external_id": "T1566", "url": "https://attack.example.org/T1566"}]},
  {"type": "attack-pattern", "name": "Spearphishing Attachment", "x_mitre_is_subtechnique": true,
   "kill_chain_phases": [{"kill_chain_name": "mitre-attack", "phase_name": "initial-access"}, {"kill_chain_name": "mitre-attack", "phase_name": "initial-access"}],
   "external_references": [{"source_name": "mitre-attack", "external_id": "T1566.001", "url": "https://attack.example.org/T1566/001"}]},
  {"type": "attack-pattern", "name": "Gone", "revoked": true, "external_references": [{"source_name": "mitre-attack", "external_id": "T1001"}]},
  {"type": "attack-pattern", "name": "Old", "x_mitre_deprecated": true, "external_references": [{"source_name": "mitre-attack", "external_id": "T1002"}]},
  {"type": "attack-pattern", "name": "Mobile one", "external_references": [{"source_name": "mitre-mobile-attack", "external_id": "T1400"}]},
  {"type": "attack-pattern", "name": "Mobile two", "x_mitre_domains": ["mobile-attack"], "external_references": [{"source_name": "mitre-attack", "external_id": "T1401"}]},
  {"type": "attack-pattern", "name": "Plant", "kill_chain_phases": [{"kill_chain_name": "mitre-ics-attack", "phase_name": "impact"}], "external_references": [{"source_name": "mitre-ics-attack", "external_id": "T0800"}]},
  {"type": "attack-pattern", "name": "No id", "external_references": [{"source_name": "mitre-attack", "external_id": "TA0001"}]},
  {"type": "attack-pattern", "external_references": [{"source_name": "mitre-attack", "external_id": "T1003"}]},
  {"type": "attack-pattern", "name": 7, "external_references": "x"},
  {"type": "course-of-action", "name": "M", "external_references": [{"source_name": "mitre-attack", "external_id": "T1004"}]},
  "no object", 7, null
 ]
}`

func TestATableIsMadeOfABundle(t *testing.T) {
	t.Parallel()
	table, err := ReadMitre(strings.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"T0800":{"name":"Plant","tactics":["Impact"],"url":"","matrix":"ics"},` +
		`"T1400":{"name":"Mobile one","tactics":[],"url":"","matrix":"mobile"},` +
		`"T1401":{"name":"Mobile two","tactics":[],"url":"","matrix":"mobile"},` +
		`"T1566":{"name":"Phishing","tactics":["Initial Access"],"url":"https://attack.example.org/T1566","matrix":"enterprise"},` +
		`"T1566.001":{"name":"Spearphishing Attachment","tactics":["Initial Access"],"url":"https://attack.example.org/T1566/001","matrix":"enterprise"}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	d := Open(t.TempDir())
	key, counts, err := d.AddMitre(file(t, "b.json", bundle))
	if err != nil || key.Key != MitreTechniques || counts["enterprise"] != 2 || counts["mobile"] != 2 || counts["ics"] != 1 {
		t.Errorf("%v %v %v", key, counts, err)
	}
	if value := get(t, d, MitreTechniques); value != want {
		t.Errorf("%s is %s", MitreTechniques, value)
	}
	if value := get(t, d, "mitre_attack_enterprise"); value != "-" {
		t.Errorf("a key that published hosts do not have is %s", value)
	}
}

func TestWhatIsNoBundleIsRefused(t *testing.T) {
	t.Parallel()
	d := Open(t.TempDir())
	for _, text := range []string{
		"", "x", "[]", "{}", `{"type":"bundle"}`, `{"type":"bundle","objects":[]}`, `{"type":"bundle","objects":{}}`, `{"type":"report","objects":[]}`, `{"type":7,"objects":[]}`,
		`{"objects":[{"type":"attack-pattern"}]}`, bundle[:len(bundle)/2], `{"type":"bundle","objects":[{"type":"attack-pattern"`,
	} {
		if _, _, err := d.AddMitre(file(t, "b.json", text)); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	if keys, err := d.List(); err != nil || len(keys) != 1 || keys[0].Form != Bundled {
		t.Errorf("kept: %v %v", keys, err)
	}
}

// TestALargeBundleIsReadObjectByObject: 50 MB, in a small part of that.
func TestALargeBundleIsReadObjectByObject(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		fmt.Fprint(w, `{"type":"bundle","objects":[`)
		text := strings.Repeat("d", 50_000)
		for i := range 1000 {
			fmt.Fprintf(w, `{"type":"attack-pattern","name":"n%d","description":%q,"external_references":[{"source_name":"mitre-attack","external_id":"T%04d"}]},`, i, text, 1000+i)
		}
		fmt.Fprint(w, `{"type":"identity"}]}`)
		w.Close()
	}()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table, err := ReadMitre(r)
	runtime.ReadMemStats(&after)
	if err != nil || len(table) != 1000 {
		t.Fatalf("%d techniques, %v", len(table), err)
	}
	t.Run("memory", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: the memory that a large bundle takes")
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 16<<20 {
			t.Errorf("the heap grew by %d MiB", grown>>20)
		}
	})
}
