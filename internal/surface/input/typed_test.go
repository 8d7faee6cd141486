package input

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
		arguments, set []string
		input          string
		want           int
	}{
		"an argument":                     {arguments: []string{"--output_path", dir + "/a.json"}, want: 1},
		"two arguments":                   {arguments: []string{"--output_path", dir + "/a.json", "--save-to", "b.md", "--title", "x"}, want: 2},
		"--set":                           {set: []string{"output_path=" + dir + "/a.json"}, want: 1},
		"an object":                       {arguments: []string{string(input)}, want: 2},
		"the input as it stands":          {input: string(input), want: 2},
		"a file":                          {input: "@input.json", want: 0},
		"standard input":                  {input: "-", want: 0},
		"no name of a file to write":      {arguments: []string{"--report_path", "/r"}, want: 0},
		"what the input then has not":     {arguments: []string{"--output_path", "/elsewhere"}, want: 0},
		"a file, and another by argument": {input: "@input.json", arguments: []string{"--save-to", "b.md"}, want: 1},
	} {
		read, err := Read(c.arguments, c.set)
		if got := read.Outputs(c.input, input); err != nil || len(got) != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
