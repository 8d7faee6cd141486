package protocol_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/protocol/protocoltest"
)

// TestSchemas holds every line of every transcript, and every message on the
// page of the specification, against the schemas of its frame and of what the
// frame carries. No schema is left without a message that fits it.
func TestSchemas(t *testing.T) {
	t.Parallel()
	s := loadSchemas(t)
	transcripts, err := protocoltest.Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range transcripts {
		conversation := talk{s, "testdata/" + c.Name, map[string]string{}}
		for _, line := range c.Lines {
			text := plausible(t, line.Text)
			if c.Only == "plugin" { // a later host begins it, and says more than this version knows
				delete(text, "from_the_future")
			}
			conversation.line(t, text)
		}
	}
	for name, lines := range pageMessages(t, "../docs/protocol.md") {
		conversation := talk{s, name, map[string]string{}}
		for _, line := range lines {
			conversation.line(t, plausible(t, line))
		}
	}
	// No transcript has it yet.
	talk{s, "operations.call", map[string]string{}}.line(t, plausible(t,
		`{"jsonrpc":"2.0","id":"s1","method":"operations.call","params":{"call":"5f...","operation":"text.word_count/word_count","input":{"text":"to be"},"key":"order-1"}}`))
	for name, one := range s {
		if !one.used {
			t.Errorf("no message shows what %s.json is for", name)
		}
	}
}

// A messageSchema is one file of protocol/schemas.
type messageSchema struct {
	compiled *schema.Schema
	required []string
	used     bool
}

type schemas map[string]*messageSchema

func loadSchemas(t *testing.T) schemas {
	t.Helper()
	paths, err := filepath.Glob("schemas/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	all := schemas{}
	for _, path := range paths {
		if strings.HasSuffix(path, ".schema.json") { // of what a message carries; the host checks it
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			Dialect     string   `json:"$schema"`
			Title       string   `json:"title"`
			Description string   `json:"description"`
			Required    []string `json:"required"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if head.Dialect != "https://json-schema.org/draft/2020-12/schema" || head.Title == "" || head.Description == "" {
			t.Errorf("%s: a schema names its dialect, its title and what it describes", path)
		}
		compiled, err := schema.Compile(raw)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = &messageSchema{compiled: compiled, required: head.Required}
	}
	return all
}

// check holds a message against a schema, and makes sure that the schema would
// miss each member it requires.
func (s schemas) check(t *testing.T, where, name string, message any) {
	t.Helper()
	one, there := s[name]
	if !there {
		t.Errorf("%s: there is no protocol/schemas/%s.json", where, name)
		return
	}
	one.used = true
	raw, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.compiled.Check(t.Context(), raw); err != nil {
		t.Errorf("%s: %s.json refuses %s: %v", where, name, raw, err)
	}
	members, _ := message.(map[string]any)
	for _, member := range one.required {
		less := maps.Clone(members)
		delete(less, member)
		raw, err := json.Marshal(less)
		if err != nil {
			t.Fatal(err)
		}
		if one.compiled.Check(t.Context(), raw) == nil {
			t.Errorf("%s: %s.json accepts a message without %s", where, name, member)
		}
	}
}

// A talk is one conversation being read: which request had which method.
type talk struct {
	schemas
	where  string
	method map[string]string // by id
}

func (c talk) line(t *testing.T, message map[string]any) {
	t.Helper()
	if _, old := message["type"]; old {
		c.version1(t, message)
		return
	}
	c.check(t, c.where, "frame", message)
	id, _ := json.Marshal(message["id"])
	method, asks := message["method"].(string)
	switch {
	case asks:
		c.method[string(id)] = method
		if name := paramsSchema(method); name != "" {
			c.check(t, c.where, name, message["params"])
		}
		if method == "reconcile" { // and what execute has
			c.check(t, c.where, "execute.params", message["params"])
		}
	case message["error"] != nil:
		c.check(t, c.where, "error", message["error"])
	default:
		if name := resultSchema(c.method[string(id)]); name != "" {
			c.check(t, c.where, name, message["result"])
		}
	}
}

// paramsSchema returns which schema a method's params have, "" where any
// object will do.
func paramsSchema(method string) string {
	switch method {
	case "describe", "from_the_future", "$/from_the_future":
		return ""
	case "$/cancel":
		return "cancel.params"
	case "preview":
		return "execute.params"
	}
	name := method + ".params"
	if service, _, isService := strings.Cut(method, "."); isService && service != "operations" {
		return "service.params"
	}
	return name
}

func resultSchema(method string) string {
	switch method {
	case "initialize", "describe", "execute", "preview", "reconcile", "hook":
		return method + ".result"
	}
	return "" // {} of shutdown, and the values of services
}

func (c talk) version1(t *testing.T, message map[string]any) {
	t.Helper()
	name := "v1." + message["type"].(string)
	if _, answers := message["manifest"]; answers {
		name += "_reply"
	}
	c.check(t, c.where, name, message)
}

// stands are plausible values for "<any>", by the member it stands for.
var stands = map[string]any{
	"message": "what went wrong", "plugin_code": "SOME_CODE", "description": "what it does",
}

// plausible reads one message and puts something in the place of "<any>", and
// the whole in the place of values that a page has cut short.
func plausible(t *testing.T, text string) map[string]any {
	t.Helper()
	text = regexp.MustCompile(`"sha256:[0-9a-f]*\.\.\.[^"]*"`).ReplaceAllString(text, `"sha256:`+strings.Repeat("9f", 32)+`"`)
	text = regexp.MustCompile(`"call":"[0-9a-f]*\.\.\.[^"]*"`).ReplaceAllString(text, `"call":"`+strings.Repeat("5f", 16)+`"`)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var message map[string]any
	if err := decoder.Decode(&message); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return filled("", message).(map[string]any)
}

func filled(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			value[name] = filled(name, inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = filled("", inner)
		}
	case string:
		if value != "<any>" {
			break
		}
		if stand, known := stands[name]; known {
			return stand
		}
		return map[string]any{"kind": "tool"} // an operation as describe has it
	}
	return value
}

// pageMessages returns the messages that a page shows: the lines of its blocks
// of JSON, and those within a paragraph. What shares a name is one conversation.
func pageMessages(t *testing.T, path string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		name := path + ": " + block[1][:min(60, len(block[1]))]
		for line := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n") {
			found[name] = append(found[name], line)
		}
	}
	for _, span := range regexp.MustCompile("`(\\{\"(?:jsonrpc|type)\":[^`]*)`").FindAllStringSubmatch(string(raw), -1) {
		found[path+": "+span[1]] = []string{span[1]}
	}
	if len(found) < 9 {
		t.Errorf("%s shows %d messages; it had more", path, len(found))
	}
	// An answer needs to know its question, which may be in an earlier block.
	for name, lines := range found {
		if strings.Contains(lines[0], `"id":3,"error"`) {
			found[name] = slices.Insert(lines, 0, `{"jsonrpc":"2.0","id":3,"method":"describe","params":{}}`)
		}
	}
	return found
}

// TestSchemasRefuse shows that the schemas hold what the specification says
// beyond the members that are required.
func TestSchemasRefuse(t *testing.T) {
	t.Parallel()
	s := loadSchemas(t)
	for _, c := range []struct{ name, message string }{
		{"frame", `{"jsonrpc":"1.0","id":1,"result":{}}`},
		{"frame", `{"jsonrpc":"2.0"}`},
		{"frame", `{"jsonrpc":"2.0","id":1}`},
		{"frame", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}`},
		{"frame", `{"jsonrpc":"2.0","id":1,"result":{},"x":1}`},
		{"frame", `{"jsonrpc":"2.0","id":1.5,"result":{}}`},
		{"frame", `{"jsonrpc":"2.0","id":null,"result":{}}`},
		{"frame", `[{"jsonrpc":"2.0","id":1,"result":{}}]`},
		{"frame", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 65) + `","method":"cache.get","params":{}}`},
		{"initialize.result", `{"protocol":"1","plugins":[{"name":"a","version":"1.0.0"}]}`},
		{"initialize.result", `{"protocol":"2","plugins":[]}`},
		{"initialize.result", `{"protocol":"2","plugins":[{"name":"a","version":"1.0.0"}],"concurrency":0}`},
		{"initialize.result", `{"protocol":"2","plugins":[{"name":"a","version":"1.0.0"}],"concurrency":1025}`},
		{"execute.result", `{"status":"done"}`},
		{"execute.result", `{"status":"failed"}`},
		{"execute.result", `{"status":"succeeded","error":{"code":"plugin_error","message":"m"}}`},
		{"execute.result", `{"status":"succeeded","metrics":{"tokens_in":"many"}}`},
		{"describe.result", `{"plugins":[{"name":"a","operations":{"b":{"kind":"function"}}}]}`},
		{"describe.result", `{"plugins":[{"name":"a","operations":{"b":{"kind":"tool","labels":["secret"]}}}]}`},
		{"describe.result", `{"plugins":[{"name":"a","hooks":[{"priority":1}]}]}`},
		{"describe.result", `{"plugins":[{"name":"a","hooks":[{"event":"tool.before@v1","failure_mode":"ignore"}]}]}`},
		{"hook.params", `{"event":"tool.before","shape":"veto","payload":{},"agent":"a","deadline_ms":1}`},
		{"hook.params", `{"event":"tool.before@v1","shape":"filter","payload":{},"agent":"a","deadline_ms":1}`},
		{"hook.params", `{"event":"tool.before@v1","shape":"veto","payload":[],"agent":"a","deadline_ms":1}`},
		{"hook.result", `{"allow":"yes"}`},
		{"hook.result", `{"payload":"text"}`},
		{"hook.result", `true`},
		{"preview.result", `{"shown":1}`},
		{"reconcile.result", `{"outcome":"done"}`},
		{"reconcile.result", `{"outcome":"not_done","data":1}`},
		{"reconcile.result", `{"outcome":"succeeded","error":{"code":"plugin_error","message":"m"}}`},
		{"reconcile.result", `{"outcome":"failed","error":{"code":"plugin_error"}}`},
		{"reconcile.params", `{"effects":[{"method":"http.fetch","effect":"http_write","request_hash":"h","occurrence":0,"state":"sent","provider_key":""}]}`},
		{"emit.params", `{"call":"` + strings.Repeat("0", 32) + `","seq":0,"kind":"content","data":1}`},
		{"emit.params", `{"call":"` + strings.Repeat("0", 32) + `","seq":1,"kind":"progress","data":{"done":"half"}}`},
		{"cancel.params", `{"call":"` + strings.Repeat("0", 32) + `","reason":"boredom"}`},
		{"operations.call.params", `{"call":"` + strings.Repeat("0", 32) + `","operation":"a/b","args":{}}`},
		{"v1.handshake_reply", `{"type":"handshake","manifest":{"plugin_id":"a","plugin_version":"1","protocol_version":"p","exposed_tools":["x","x"]}}`},
		{"v1.handshake_reply", `{"type":"handshake","manifest":{"plugin_id":"a","plugin_version":"1","protocol_version":"p","exposed_tools":["x"],"capabilities":[" y"]}}`},
		{"v1.handshake_reply", `{"type":"handshake","manifest":{"plugin_id":" ","plugin_version":"1","protocol_version":"p","exposed_tools":["x"]}}`},
		{"v1.response", `{"type":"response","request_id":"r","status":"ok","error":{"code":"a","message":"b"}}`},
		{"v1.response", `{"type":"response","request_id":"r","status":"error"}`},
		{"v1.response", `{"type":"response","request_id":"r","status":"error","error":{"code":"","message":"b"}}`},
	} {
		one, there := s[c.name]
		if !there {
			t.Errorf("there is no %s.json", c.name)
		} else if one.compiled.Check(t.Context(), []byte(c.message)) == nil {
			t.Errorf("%s.json accepts %s", c.name, c.message)
		}
	}
}
