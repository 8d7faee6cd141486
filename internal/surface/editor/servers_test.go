package editor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/plugin"
)

// The servers of each program's configuration are found, in the shape that the program has.
func TestTheServersOfEachProgram(t *testing.T) {
	t.Parallel()
	for _, p := range Programs() {
		own, err := p.File(Places{Home: "/", Config: "/"}, "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join("testdata", p.Name+".after"))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), filepath.Base(own))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := Servers(file)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		found := false
		for _, s := range all {
			if s.Name == entry.Name {
				found = s.Problem == nil && reflect.DeepEqual(s.Command, append([]string{entry.Command}, entry.Args...)) && reflect.DeepEqual(s.Env, entry.Env)
			}
		}
		if !found {
			t.Errorf("%s: %+v", p.Name, all)
		}
	}
}

// What becomes of an entry: its credentials are secrets, and what cannot be mounted says why.
func TestWhatAServerBecomes(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"SET": "the-value-of-set"}
	lookup := func(name string) (string, bool) { v, is := environment[name]; return v, is }
	for _, c := range []struct {
		entry            string
		manifest         string // of its runner and http, as JSON
		secrets          string
		wants, says, off string
	}{
		{entry: `{"command": "srv", "args": ["-v"], "env": {"API_KEY": "abcdefgh1", "LANG": "C", "SHORT_KEY": "x", "DB": "postgres://u:p@h/db", "HASH": "0123456789abcdef0123"}}`,
			manifest: `{"runner":{"command":["srv","-v"],"env":{"API_KEY":{"secret":"API_KEY"},"DB":{"secret":"DB"},"HASH":{"secret":"HASH"},"LANG":"C","SHORT_KEY":"x"},"kind":"mcp"}}`,
			secrets:  `map[API_KEY:abcdefgh1 DB:postgres://u:p@h/db HASH:0123456789abcdef0123]`, wants: "[]"},
		{entry: `{"command": "srv", "env": {"A": "${SET}", "B": "${env:NOT_SET}", "C": "{env:ALSO_NOT}"}}`,
			manifest: `{"runner":{"command":["srv"],"env":{"A":{"secret":"SET"},"B":{"secret":"NOT_SET"},"C":{"secret":"ALSO_NOT"}},"kind":"mcp"}}`,
			secrets:  "map[SET:the-value-of-set]", wants: "[ALSO_NOT NOT_SET]"},
		{entry: `{"url": "https://h.example.com/mcp", "headers": {"Authorization": "Bearer abc-of-a", "X-Key": "k-of-x-1", "X-Other": "v ${input:other}"}}`,
			manifest: `{"http":{"inject":[{"format":"Bearer {}","header":"Authorization","host":"h.example.com","secret":"AUTHORIZATION"},{"header":"X-Key","host":"h.example.com","secret":"X_KEY"},{"format":"v {}","header":"X-Other","host":"h.example.com","secret":"other"}]},"runner":{"kind":"mcp","url":"https://h.example.com/mcp"}}`,
			secrets:  "map[AUTHORIZATION:abc-of-a X_KEY:k-of-x-1]", wants: "[other]"},
		{entry: `{"serverUrl": "https://h.example.com/mcp", "disabled": true}`, manifest: `{"runner":{"kind":"mcp","url":"https://h.example.com/mcp"}}`, secrets: "map[]", wants: "[]", off: "off"},
		{entry: `{"command": "npx", "args": ["x"]}`, says: "npx fetches"},
		{entry: `{"command": "bin/srv"}`, says: "neither a name nor an absolute path"},
		{entry: `{"command": "srv", "args": ["${workspaceFolder}"]}`, says: "${workspaceFolder}"},
		{entry: `{"command": "srv", "env": {"A": "a${SET}"}}`, says: "mixes"},
		{entry: `{"url": "https://${HOST}/mcp"}`, says: "placeholder"},
		{entry: `{"url": "https://u:p@h/mcp"}`, says: "before the host"},
		{entry: `{"type": "sse", "url": "https://h/sse"}`, says: "2024-11-05"},
		{entry: `{"command": "a", "url": "https://h"}`, says: "neither"},
		{entry: `{"command": 7}`, says: "neither a text nor a list"},
		{entry: `[]`, says: "cannot unmarshal"},
	} {
		file := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {"one": %s}, /* of a person */}`, c.entry), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := Servers(file)
		if err != nil || len(all) != 1 {
			t.Errorf("%s: %+v, %v", c.entry, all, err)
			continue
		}
		err = all[0].Problem
		var m Mounted
		if err == nil {
			m, err = all[0].Mount("one", lookup, false)
		}
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.entry, err)
			}
			continue
		}
		if err != nil || all[0].Off != (c.off != "") {
			t.Errorf("%s: %v, off %t", c.entry, err, all[0].Off)
			continue
		}
		var manifest struct {
			HTTP   any `yaml:"http" json:"http,omitempty"`
			Runner any `yaml:"runner" json:"runner"`
		}
		if err := yaml.Unmarshal(m.Manifest, &manifest); err != nil {
			t.Fatal(err)
		}
		raw, err := marshal(manifest)
		if err != nil || raw != c.manifest {
			t.Errorf("%s: %s, %v", c.entry, raw, err)
		}
		if got := fmt.Sprint(m.Secrets); got != c.secrets || fmt.Sprint(m.Wants) != c.wants {
			t.Errorf("%s: %s, %v", c.entry, got, m.Wants)
		}
		for _, value := range m.Secrets {
			if strings.Contains(string(m.Manifest), value) {
				t.Errorf("%s: a credential is in the manifest", c.entry)
			}
		}
	}
}

// A file that is no configuration, or that is too much, is refused.
func TestFilesWithoutServers(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range maxServers + 1 {
		fmt.Fprintf(&many, `"s%d": {"command": "x"},`, i)
	}
	for name, text := range map[string]string{
		"a.json": `{}`, "b.json": `{"mcpServers": []}`, "c.json": "nothing", "d.toml": "[[", "e.toml": "a = 1\n", "f.json": `{"mcpServers": {` + many.String() + `}}`,
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Servers(file); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for server, want := range map[string]string{"github": "github", "my server/1": "my-server-1", "9lives": "mcp-9lives", "é": "mcp-", strings.Repeat("a", 200): strings.Repeat("a", 100)} {
		if got := PluginName(server); got != want {
			t.Errorf("%s becomes %s", server, got)
		}
	}
}

func marshal(value any) (string, error) {
	raw, err := json.Marshal(value)
	return string(raw), err
}
