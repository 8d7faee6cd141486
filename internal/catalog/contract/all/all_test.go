package all_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// dir writes a plugin's files, given as alternating names and contents.
func dir(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(root, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const native = `
name: outreach_email
version: 1.2.0
owner: example
description: Draft, review and send outreach email.
runner: {kind: process, entry: plugin.py, protocol: "2"}
isolation: shared
capabilities: [http, secrets]
operations:
  send:
    kind: operator
    description: Send an approved draft.
    input: schemas/send.json
    output: {type: object, properties: {id: {type: string, maxLength: 64}}}
    effects: [gmail_send]
    policy_tags: [external_send]
    permissions: [email:send]
    timeout: slow
  draft: {timeout: 90s, hidden: true, no_cache: true}
requires: {tools: ["Doc.Summarize@1.x"], context_fields: [student.profile]}
observability: {log_level: info, emit_samples: true}
`

func TestNativeManifest(t *testing.T) {
	t.Parallel()
	m, err := contract.Read(dir(t, "manifest.yaml", native, "plugin.py", "", "schemas/send.json", "{ \"type\" : \"object\" }\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(m)
	want := `{"name":"outreach_email","version":"1.2.0","owner":"example","description":"Draft, review and send outreach email.","dialect":"native",` +
		`"runner":{"kind":"process","entry":"plugin.py","protocol":"2"},"isolation":"tenant","capabilities":["http","secrets"],` +
		`"operations":[{"name":"draft","kind":"tool","timeout":90000000000,"hidden":true,"no_cache":true},` +
		`{"name":"send","kind":"operator","description":"Send an approved draft.","input":{"type":"object"},` +
		`"output":{"type":"object","properties":{"id":{"type":"string","maxLength":64}}},"effects":["gmail_send"],` +
		`"policy_tags":["external_send"],"permissions":["email:send"],"timeout":600000000000}],` +
		`"requires":{"tools":["Doc.Summarize@1.x"],"context_fields":["student.profile"]},"observability":{"log_level":"info","emit_samples":true}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The example of the kernel contracts, 5.1.1, as it stands.
const kernelExample = `{
  "name": "Email.GenerateDraft",
  "type": "operator",
  "version": "1.2.0",
  "owner": "canapply",
  "description": "Generate a funding outreach email draft",
  "schemas": {
    "input": "schemas/email_generate_input.v1.json",
    "output": "schemas/email_generate_output.v1.json"
  },
  "requires": {
    "tools": ["Doc.Summarize@1.x", "Text.Dedupe@1.x"],
    "capabilities": [],
    "context_fields": ["student.profile", "professor.entity", "request.scope"]
  },
  "policy_tags": ["draft_only", "pii_allowed"],
  "observability": {
    "log_level": "info",
    "emit_samples": false
  }
}`

func TestKernelContractExampleIsValidAsItStands(t *testing.T) {
	t.Parallel()
	r, err := contract.Inspect(dir(t, "manifest.json", kernelExample, "plugin.py", "",
		"schemas/email_generate_input.v1.json", `{"$defs":{"id":{"type":"integer"}},"type":"object","properties":{"payload":{"type":"object","properties":{"professor_id":{"$ref":"#/$defs/id"}}},"idempotency_key":{"type":"string"}}}`,
		"schemas/email_generate_output.v1.json", `{"type":"object","properties":{"text":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := r.Manifest
	if len(m.Operations) != 1 || m.Operations[0].Name != "Email.GenerateDraft" || m.Operations[0].Kind != plugin.Operator {
		t.Fatalf("operations: %+v", m.Operations)
	}
	op := m.Operations[0]
	if len(op.Effects) != 0 || op.Timeout != 120*time.Second || m.Dialect != "kernel" || m.Runner.Entry != "plugin.py" {
		t.Errorf("got %+v %+v", op, m)
	}
	if got, want := string(op.Input), `{"type":"object","properties":{"professor_id":{"$ref":"#/$defs/id"}},"$defs":{"id":{"type":"integer"}}}`; got != want {
		t.Errorf("input %s, want %s", got, want)
	}
	if got, want := string(op.Output), `{"type":"object","properties":{"text":{"type":"string"}}}`; got != want {
		t.Errorf("output %s, want %s", got, want)
	}
	if got, want := r.Notes.Error(), "manifest.json: at /schemas/input: it describes the envelope of the contract: payload is taken out of it"; got != want {
		t.Errorf("notes %q, want %q", got, want)
	}
}

// What a plugin requires of the host it asks for: it is granted, shown and compared as
// what stands under capabilities is.
func TestRequiredCapabilitiesAreAskedFor(t *testing.T) {
	t.Parallel()
	r, err := contract.Inspect(dir(t, "plugin.py", "", "manifest.json", `{"name":"Notes.Find","type":"tool","version":"1.0.0","owner":"a","description":"finds notes",
		"schemas":{"input":{"type":"object"},"output":{"type":"object"}},"capabilities":["log"],"requires":{"capabilities":["kb","log"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Manifest.Capabilities, " "); got != "log kb" {
		t.Errorf("it asks for %q", got)
	}
}

func TestWhatMayBeLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, manifest string
		check          func(*plugin.Manifest) bool
	}{
		{"operations, which the code describes", "name: a\nversion: 1.0.0\nrunner: {entry: plugin.py}", func(m *plugin.Manifest) bool { return len(m.Operations) == 0 && contract.NeedsDescribe(m) }},
		{"a runner, where one file can be it", "name: a\nversion: 1.0.0\noperations: {x: {}}", func(m *plugin.Manifest) bool { return m.Runner.Entry == "plugin.py" && m.Runner.Protocol == "2" }},
		{"quotes around the protocol", "name: a\nversion: 1.0.0\nrunner: {command: [sh], protocol: 2}", func(m *plugin.Manifest) bool { return m.Runner.Protocol == "2" && m.Runner.Command[0] == "sh" }},
		{"isolation of protocol 1", "name: a\nversion: 1.0.0\nrunner: {entry: ./plugin.py, protocol: 1}\noperations: {x: {}}", func(m *plugin.Manifest) bool {
			return m.Isolation == plugin.IsolationCall && m.Runner.Entry == "plugin.py" && !contract.NeedsDescribe(m)
		}},
		{"features that are switched off", "name: a\nversion: 1.0.0\noperations: {x: {preview: false, reconcile: false}}", func(m *plugin.Manifest) bool { return len(m.Operations) == 1 }},
		{"names that YAML has words for", "name: int\nversion: 1.0.0\noperations: {null: {}, true: {}, on: {}}", func(m *plugin.Manifest) bool {
			return m.Name == "int" && m.Operation("null") != nil && m.Operation("true") != nil && m.Operation("on") != nil
		}},
		{"an alias", "name: a\nversion: 1.0.0\noperations: {x: &x {timeout: fast}, y: *x}", func(m *plugin.Manifest) bool { return m.Operation("y").Timeout == 30*time.Second }},
		{"a byte order mark", "\ufeffname: a\nversion: 1.0.0\noperations: {x: {}}", func(m *plugin.Manifest) bool { return m.Name == "a" }},
	} {
		m, err := contract.Read(dir(t, "manifest.yml", c.manifest, "plugin.py", ""))
		if err != nil || !c.check(m) {
			t.Errorf("%s: %+v, %v", c.name, m, err)
		}
	}
}

func TestProblemsAreAllReportedWithPlaceAndReason(t *testing.T) {
	t.Parallel()
	const head = "name: a\nversion: 1.0.0\n"
	for _, c := range []struct{ name, manifest, want string }{
		{"empty", " \n", `manifest.yaml: it is empty`},
		{"only comments", "# nothing\n", `manifest.yaml: it is empty`},
		{"not UTF-8", "name: \xff\n", `manifest.yaml: it is not UTF-8 text`},
		{"a list", "- name: a\n", `manifest.yaml: a manifest is a mapping, not a list`},
		{"two documents", head + "---\nname: b\n", `manifest.yaml: it holds more than one document`},
		{"syntax", "name: [a\n", "manifest.yaml: line 1: sequence end token ']' not found"},
		{"neither contract", "name: a\nversion: 1.0.0\n", `manifest.yaml: this is neither a manifest of Event Mill (tool_name), nor of the kernel contract (name, with type), nor of Mortise itself (name, with operations or runner), nor of Shu (module or entrypoints), nor of plugins and hooks (manifest.json beside index.ts)`},
		{"both contracts", head + "type: tool\noperations: {}\n", `manifest.yaml: at /type: it makes this a manifest of the kernel contract, which has no operations and hooks; a native manifest gives each operation a kind`},
		{"another contract", "tool_name: a\nclass_name: A\n", `manifest.yaml: a manifest of Event Mill is called manifest.json`},
		{"everything missing", "operations: {x: {}}\n", "manifest.yaml: at /name: it is missing\nmanifest.yaml: at /version: it is missing"},
		{"numbers for text", "name: 1\nversion: 1.0\noperations: {x: {}}\ndescription: true\n",
			"manifest.yaml: at /description: text belongs here, not true: put it in quotes\nmanifest.yaml: at /name: text belongs here, not the number 1: put it in quotes\nmanifest.yaml: at /version: text belongs here, not the number 1.0: put it in quotes"},
		{"nothing", "name: a\nversion: 1.0.0\noperations:\n", "manifest.yaml: at /operations: nothing stands here: give a mapping, or leave the key out"},
		{"a name", "name: a b\nversion: v1\noperations: {x/y: {}}\n",
			"manifest.yaml: at /name: \"a b\" is no name: a name is a letter and up to 127 letters, digits, dots, hyphens and underscores\n" +
				"manifest.yaml: at /operations/x~1y: \"x/y\" is no name: a name is a letter and up to 127 letters, digits, dots, hyphens and underscores\n" +
				"manifest.yaml: at /version: \"v1\" is no semantic version, such as 1.2.0"},
		{"unknown keys", head + "operatoins: {}\noperations: {x: {inptu: {}, colour: red}}\n",
			"manifest.yaml: at /operations/x/colour: unknown key\nmanifest.yaml: at /operations/x/inptu: unknown key; did you mean input?\nmanifest.yaml: at /operatoins: unknown key; did you mean operations?"},
		{"keys twice", head + "operations: {x: {}, x: {}}\nname: b\n", "manifest.yaml: at /name: the key stands here twice\nmanifest.yaml: at /operations/x: the key stands here twice"},
		{"letter case", head + "operations: {send: {}, Send: {}}\n", "manifest.yaml: at /operations/Send: it differs from send in letter case only"},
		{"no operation", head + "operations: {}\n", "manifest.yaml: at /operations: no operation stands here: name one, or leave the key out for the code to name them"},
		{"accounts", head + "operations: {x: {auth: {mode: robot}}}\n",
			"manifest.yaml: at /operations/x/auth/mode: \"robot\" is none of user, service_account, domain_delegate\nmanifest.yaml: at /operations/x/auth/provider: it is missing"},
		{"hooks", head + "hooks: [{event: tool.before}, {event: tea.time@v1, priority: soon, failure_mode: maybe, deadline: 1h}, {priority: 7}]\noperations: {x: {}}\n",
			"manifest.yaml: at /hooks/0/event: there is no event \"tool.before\": say tool.before@v1; docs/events.md has them all\n" +
				"manifest.yaml: at /hooks/1/deadline: a hook has at most 10m0s\nmanifest.yaml: at /hooks/1/event: there is no event \"tea.time@v1\"; docs/events.md has them all\n" +
				"manifest.yaml: at /hooks/1/failure_mode: \"maybe\" is none of skip, fail\nmanifest.yaml: at /hooks/1/priority: a number belongs here, not text\nmanifest.yaml: at /hooks/2/event: it is missing"},
		{"webhooks", head + "runner: {kind: webhook, url: 'ftp://x', entry: plugin.py}\nhooks: [{event: tool.after@v1}, {event: tool.before@v1}]\noperations: {x: {}}\n",
			"manifest.yaml: at /hooks/1/event: tool.before@v1 goes to handlers inside the host alone; a webhook may have [session.closed@v1 tool.after@v1 schedule.fired@v1 memory.upsert@v1]\n" +
				"manifest.yaml: at /operations: a plugin behind a webhook has hooks and nothing else\nmanifest.yaml: at /runner/entry: a runner of kind webhook has no such key\n" +
				"manifest.yaml: at /runner/secret: it is missing\nmanifest.yaml: at /runner/url: \"ftp://x\" is no address such as https://hooks.example.com/mortise"},
		{"a tool with effects", head + "operations: {x: {effects: [db_write]}}\n", "manifest.yaml: at /operations/x/effects: only an operator may cause effects, and this is of kind tool"},
		{"a kind", head + "operations: {x: {kind: robot}}\n", `manifest.yaml: at /operations/x/kind: "robot" is none of agent, operator, tool, adapter`},
		{"words", head + "capabilities: [http, ' kb', '', http, 7]\noperations: {x: {policy_tags: tag}}\n",
			"manifest.yaml: at /capabilities/1: \" kb\" has white space around it\nmanifest.yaml: at /capabilities/2: it is empty\nmanifest.yaml: at /capabilities/3: \"http\" stands here twice\n" +
				"manifest.yaml: at /capabilities/4: text belongs here, not the number 7: put it in quotes\nmanifest.yaml: at /operations/x/policy_tags: a list belongs here, not text"},
		{"timeouts", head + "operations: {a: {timeout: 30}, b: {timeout: soon}, c: {timeout: 25h}, d: {timeout: -1s}}\n",
			"manifest.yaml: at /operations/a/timeout: the number 30 has no unit: write 30s, for instance\nmanifest.yaml: at /operations/b/timeout: \"soon\" is none of fast, medium, slow and no duration, such as 90s\n" +
				"manifest.yaml: at /operations/c/timeout: 25h is longer than 24h\nmanifest.yaml: at /operations/d/timeout: -1s is no time at all"},
		{"schemas", head + "operations: {a: {input: schemas/x.json}, b: {input: ../x.json, output: /etc/passwd}, c: {input: link.json}, d: {input: {type: strnig}}, e: {input: [1]}, f: {input: bad.json}, g: {input: dir}, h: {output: bad2.json}}\n",
			"manifest.yaml: at /operations/a/input: schemas/x.json: no such file\nmanifest.yaml: at /operations/b/input: ../x.json: a path inside the package belongs here, with / between its parts\n" +
				"manifest.yaml: at /operations/b/output: /etc/passwd: a path inside the package belongs here, with / between its parts\nmanifest.yaml: at /operations/c/input: link.json: symbolic links are not followed\n" +
				"manifest.yaml: at /operations/d/input: the schema is refused at /type: value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'; at /type: got string, want array\n" +
				"manifest.yaml: at /operations/e/input: a path or a JSON Schema belongs here, not a list\nmanifest.yaml: at /operations/f/input: bad.json: it ends too early\n" +
				"manifest.yaml: at /operations/g/input: dir: it is not a file\nmanifest.yaml: at /operations/h/output: bad2.json: at /type: duplicate object member name"},
		{"runners", head + "runner: {kind: container, entry: plugin.rb, protocol: 3}\noperations: {x: {}}\n",
			"manifest.yaml: at /runner/entry: plugin.rb is none of .py, .ts, .js, .mjs; anything else is run by command\nmanifest.yaml: at /runner/kind: \"container\" is none of process, script, webhook, mcp\nmanifest.yaml: at /runner/protocol: \"3\" is none of 1, 2"},
		{"two runners", head + "runner: {entry: plugin.py, command: [sh]}\n", "manifest.yaml: at /runner/command: there is an entry too; keep one of them"},
		{"no program", head + "runner: {command: []}\n", "manifest.yaml: at /runner/command: a program belongs here, at least"},
		{"programs", head + "runner: {command: [bin/x, 1, \"a\\0\"]}\n",
			"manifest.yaml: at /runner/command/0: \"bin/x\" is neither a file of the package (./file), nor the name of a program, nor an absolute path\nmanifest.yaml: at /runner/command/1: text belongs here, not the number 1: put it in quotes\nmanifest.yaml: at /runner/command/2: it holds a zero byte"},
		{"a program that is not one", head + "runner: {command: [./plugin.py]}\n", "manifest.yaml: at /runner/command/0: ./plugin.py: it is not executable"},
		{"isolation", head + "isolation: session\nrunner: {command: [sh], protocol: 1}\n",
			"manifest.yaml: at /isolation: a plugin of protocol 1 has a process for each call: session cannot be had\nmanifest.yaml: at /operations: it is missing: a plugin of protocol 1 cannot describe its operations itself"},
		{"requires", head + "requires: {tools: ['a@', 'b@nonsense', '/x', 'ok@^1']}\noperations: {x: {}}\n",
			"manifest.yaml: at /requires/tools/0: \"a@\" names no version after the @\nmanifest.yaml: at /requires/tools/1: \"nonsense\" is no version or range of versions\nmanifest.yaml: at /requires/tools/2: \"/x\" is not of the form name/operation@version"},
		{"hidden characters", head + "description: \"Adds. \\U000E0041\"\noperations: {x: {}}\n", "manifest.yaml: at /description: it holds the character U+E0041, which does not print"},
		{"tags", head + "owner: !!binary aGk=\noperations: {x: {}}\n", "manifest.yaml: at /owner: a YAML tag cannot be read here"},
		{"merge keys", head + "operations: {x: &x {}, y: {<<: *x}}\n", "manifest.yaml: at /operations/y/<<: merge keys are not read here: write the keys out"},
		{"an alias of itself", head + "operations: &o {x: *o}\n", "manifest.yaml: at /operations/x: the alias *o stands inside what it stands for"},
		{"kernel keys", head + "type: tool\nschemas: {inputs: {}}\nhidden: true\n", "manifest.yaml: at /hidden: unknown key\nmanifest.yaml: at /schemas/inputs: unknown key; did you mean input?"},
		{"nested deep in", head + "description: " + strings.Repeat("[", 70) + strings.Repeat("]", 70), "manifest.yaml: line 3: nested deeper than 64"},
	} {
		root := dir(t, "manifest.yaml", c.manifest, "plugin.py", "", "bad.json", "{", "bad2.json", `{"type":true,"type":false}`, "dir/x", "")
		if err := os.Symlink("/etc/passwd", filepath.Join(root, "link.json")); err != nil {
			t.Fatal(err)
		}
		_, err := contract.Read(root)
		var problems contract.Problems
		if !errors.As(err, &problems) {
			t.Errorf("%s: %v is not Problems", c.name, err)
			continue
		}
		if got := err.Error(); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestWhereTheManifestIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files []string
		want  string
	}{
		{nil, "there is no manifest.yaml, manifest.yml, manifest.json, manifest.py here"},
		{[]string{"manifest.yaml", "", "manifest.json", ""}, "manifest.json: there is a manifest.yaml too; keep one of them"},
		{[]string{"manifest.yaml/x", ""}, "manifest.yaml: it is not a file"},
		{[]string{"manifest.yaml", strings.Repeat("#", 1<<20+1)}, "manifest.yaml: it is longer than 1048576 bytes"},
		{[]string{"manifest.json", "{\"name\":\"a\",\"name\":\"b\"}"}, `manifest.json: at /name: duplicate object member name`},
		{[]string{"manifest.json", "{} {}"}, `manifest.json: more than one value`},
		{[]string{"manifest.json", `{"name":"\ud800"}`}, "manifest.json: at /name: invalid surrogate pair `\\ud800\"}` in string"},
		{[]string{"manifest.json", `{"name":"a","version":"1.0.0","operations":{"x":{}}}`}, "manifest.json: at /runner: it does not say what to run, and there is no plugin.py, plugin.ts, plugin.js, plugin.mjs: give an entry or a command"},
		{[]string{"manifest.json", `{"name":"a","type":"tool","version":"1.0.0"}`, "plugin.py", "", "plugin.ts", ""}, "manifest.json: at /runner: it does not say which to run of plugin.py, plugin.ts: give an entry"},
	} {
		_, err := contract.Read(dir(t, c.files...))
		if err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.files, err, c.want)
		}
	}
	if _, err := contract.Read(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "opening the plugin's directory") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestBombsAreRefusedQuickly(t *testing.T) {
	t.Parallel()
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		prev, next := string(rune('a'+i-1)), string(rune('a'+i))
		alias := "*" + prev + "0"
		laughs += next + "0: &" + next + "0 [" + strings.TrimSuffix(strings.Repeat(alias+",", 10), ",") + "]\n"
	}
	bombs := map[string]string{"billion laughs": laughs, "kind of cycle": "x: &a [1]\ny: &b [*a]\nz: &a [*b]\nw: *a\n"}
	for _, piece := range []string{"[", "{", "- ", "? ", "a: ", "!a ", "&a ", "{a: ", "[a: ", "[a, ", "\"", "*a ", "<<: ", "- a\n", ": ", "- ? ", "a: &a ", "]", "}", "---\n", "#x\n", "\t", "'a' ", "a: |\n", "- - a\n", "-\n", "%a\n", "a:\n b:\n"} {
		bombs[piece] = strings.Repeat(piece, 1<<17/len(piece))
	}
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			if _, err := contract.Read(dir(t, "manifest.yaml", bomb)); err == nil {
				t.Error("accepted")
			}
			took := time.Since(start)
			t.Run("time", func(t *testing.T) {
				if testing.Short() {
					t.Skip("make test-long: the time that a manifest takes which is made to be slow")
				}
				if took > 5*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}
