package cli

import (
	"encoding/json"
	"testing"
)

// TestArgumentsAreOfTheTypeThatTheSchemaNames, and text in every other case.
func TestArgumentsAreOfTheTypeThatTheSchemaNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, text, want string }{
		{``, `7`, `"7"`},
		{`{}`, `7`, `"7"`},
		{`{"type":"string"}`, `7`, `"7"`},
		{`{"type":["string","integer"]}`, `7`, `"7"`},
		{`{"enum":[1,2]}`, `1`, `"1"`},
		{`{"type":"integer"}`, `7`, `7`},
		{`{"type":"integer"}`, `-5`, `-5`},
		{`{"type":"integer"}`, `12345678901234567890`, `12345678901234567890`},
		{`{"type":"integer"}`, `7.5`, `"7.5"`},
		{`{"type":"integer"}`, `many`, `"many"`},
		{`{"type":["integer","null"]}`, `null`, `null`},
		{`{"type":"number"}`, `1e3`, `1e3`},
		{`{"type":"boolean"}`, `false`, `false`},
		{`{"type":"boolean"}`, `yes`, `"yes"`},
		{`{"type":"object"}`, `{"a": 1}`, `{"a":1}`},
		{`{"type":"array"}`, `["a",1]`, `["a",1]`},
		{`{"type":"array"}`, `T1046, T1071`, `["T1046","T1071"]`},
		{`{"type":"array","items":{"type":"integer"}}`, `22,443`, `[22,443]`},
		{`{"type":"array","items":{"type":"string"}}`, `22`, `["22"]`},
		{`{"type":"array"}`, `["half"`, `"[\"half\""`},
		{`{"type":"array"}`, ``, `""`},
		{`true`, `7`, `"7"`},
	} {
		got, err := json.Marshal(argumentOf(c.text, json.RawMessage(c.schema)))
		if err != nil || string(got) != c.want {
			t.Errorf("%s as %s: %s, %v; want %s", c.text, c.schema, got, err, c.want)
		}
	}
}

// TestExportsAreWhatIsTyped at the command line and nothing else.
func TestExportsAreWhatIsTyped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	input := json.RawMessage(`{"output_path":"` + dir + `/a.json","save-to":"b.md","title":"x","report_path":"/r","export_file":7}`)
	for name, c := range map[string]struct {
		flags runFlags
		want  int
	}{
		"an argument":                     {runFlags{arguments: []string{"--output_path", dir + "/a.json"}}, 1},
		"two arguments":                   {runFlags{arguments: []string{"--output_path", dir + "/a.json", "--save-to", "b.md", "--title", "x"}}, 2},
		"--set":                           {runFlags{set: []string{"output_path=" + dir + "/a.json"}}, 1},
		"an object":                       {runFlags{arguments: []string{string(input)}}, 2},
		"the input as it stands":          {runFlags{input: string(input)}, 2},
		"a file":                          {runFlags{input: "@input.json"}, 0},
		"standard input":                  {runFlags{input: "-"}, 0},
		"no name of a file to write":      {runFlags{arguments: []string{"--report_path", "/r"}}, 0},
		"what the input then has not":     {runFlags{arguments: []string{"--output_path", "/elsewhere"}}, 0},
		"a file, and another by argument": {runFlags{input: "@input.json", arguments: []string{"--save-to", "b.md"}}, 1},
	} {
		got, err := c.flags.exports(input)
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, path := range []string{dir, dir + "/", "/dev/null"} {
		f := runFlags{set: []string{"output_path=" + path}}
		if got, err := f.exports(json.RawMessage(`{"output_path":"` + path + `"}`)); err == nil {
			t.Errorf("%s was taken: %v", path, got)
		}
	}
}
