package schema

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestThePublicSuite runs the public JSON Schema test suite (json-schema-org/JSON-Schema-Test-Suite)
// of drafts 2020-12 and 07, as a module among the dependencies brings it. The verdict of a schema
// is the suite's, and that of a program is the same or none. Schemas that refer to others over
// the network are refused when they are compiled, as they are meant to be.
func TestThePublicSuite(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata")
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		t.Skip("the public suite is not among the modules here: go mod download github.com/google/jsonschema-go: ", err)
	}
	for _, draft := range []struct{ name, id string }{
		{"draft2020-12", ""}, {"draft7", "http://json-schema.org/draft-07/schema#"},
	} {
		files, err := filepath.Glob(filepath.Join(dir, draft.name, "*.json"))
		if err != nil || len(files) < 30 {
			t.Fatalf("%s has %d files: %v", draft.name, len(files), err)
		}
		var cases, told, remote int
		for _, file := range files {
			for _, group := range groups(t, file) {
				s, err := Compile(dialect(t, group.Schema, draft.id))
				if err != nil {
					if name := filepath.Base(file); name != "refRemote.json" && !strings.Contains(string(group.Schema), "http://localhost:1234") && !strings.Contains(err.Error(), "$ref") {
						t.Errorf("%s, %s: %s: %v", draft.name, name, group.Description, err)
					}
					remote += len(group.Tests)
					continue
				}
				for _, one := range group.Tests {
					cases++
					verdict := programs(s, one.Data)
					fit := s.Check(t.Context(), one.Data) == nil
					evaluated := (&Schema{compiled: s.compiled, dynamic: s.dynamic}).Check(t.Context(), one.Data) == nil
					if fit != one.Valid || s.compiled != nil && evaluated != one.Valid || verdict == fits && !one.Valid || verdict == misfits && one.Valid {
						t.Errorf("%s, %s: %s: %s: the schema says %v, its program %d, the suite %v", draft.name, filepath.Base(file), group.Description, one.Description, fit, verdict, one.Valid)
					}
					if verdict != unsure {
						told++
					}
				}
			}
		}
		t.Logf("%s: %d cases, %d of them told by a program; %d cases of schemas that are refused, as they refer elsewhere", draft.name, cases, told, remote)
		if cases < 800 || told < cases/2 {
			t.Errorf("%s: %d cases were run and %d told by a program", draft.name, cases, told)
		}
	}
}

// programs returns the verdict of the program of a schema.
func programs(s *Schema, value []byte) verdict {
	if s.program == nil {
		return unsure
	}
	m := &machine{}
	m.begin(value)
	v := m.value(s.program, 0)
	if m.space(); v == fits && m.at != len(m.in) {
		return unsure
	}
	return v
}

type group struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func groups(t *testing.T, file string) (all []group) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return all
}

// dialect returns a schema that says its draft, where it does not and can.
func dialect(t *testing.T, schema json.RawMessage, id string) []byte {
	t.Helper()
	if id == "" || schema[0] != '{' || strings.Contains(string(schema), `"$schema"`) {
		return schema
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(schema, &members); err != nil {
		t.Fatal(err)
	}
	members["$schema"] = json.RawMessage(`"` + id + `"`)
	out, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
