package all_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/runtime"
	"github.com/mortise-dev/mortise/plugin"
)

const described = `{"plugins":[{"name":"mail","version":"1.0.0","description":"Mail.","capabilities":["http"],"operations":{
 "send":{"kind":"operator","description":"Send.","input":{"type":"object"},"output":null,"effects":["gmail_send"],"timeout":"fast"},
 "count":{"kind":"tool","input":{"type":"string"},"output":{"type":"integer"}}}}]}`

func TestBareFileIsWhatItsCodeSays(t *testing.T) {
	t.Parallel()
	m, err := contract.ReadFile(dir(t, "mail.py", "") + "/mail.py")
	if err != nil {
		t.Fatal(err)
	}
	if !contract.NeedsDescribe(m) {
		t.Error("nothing to describe")
	}
	d, err := contract.ParseDescribed([]byte(described), "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := contract.Merge(m, d)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	want := `{"name":"mail","version":"1.0.0","description":"Mail.","dialect":"native","runner":{"kind":"process","entry":"mail.py","protocol":"2"},"isolation":"tenant","capabilities":["http"],` +
		`"operations":[{"name":"count","kind":"tool","input":{"type":"string"},"output":{"type":"integer"},"timeout":120000000000},` +
		`{"name":"send","kind":"operator","description":"Send.","input":{"type":"object"},"effects":["gmail_send"],"timeout":30000000000}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if m.Name != "" || m.Operations != nil {
		t.Error("Merge changed its argument")
	}
}

func TestManifestWinsAndCodeFills(t *testing.T) {
	t.Parallel()
	declared := func() *plugin.Manifest {
		return &plugin.Manifest{Name: "mail", Version: "1.0.0", Description: "Ours.", Capabilities: []string{"http", "kb"}, Operations: []*plugin.Operation{
			{Name: "count", Kind: plugin.Tool, Input: json.RawMessage(`{"type":"integer"}`), Timeout: time.Second},
			{Name: "send", Kind: plugin.Operator, Effects: []string{"gmail_send", "db_write"}, Timeout: time.Second},
		}}
	}
	d, err := contract.ParseDescribed([]byte(described), "mail")
	if err != nil {
		t.Fatal(err)
	}
	m, err := contract.Merge(declared(), d)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(m.Operations)
	want := `[{"name":"count","kind":"tool","input":{"type":"integer"},"output":{"type":"integer"},"timeout":1000000000},` +
		`{"name":"send","kind":"operator","description":"Send.","input":{"type":"object"},"effects":["gmail_send","db_write"],"timeout":1000000000}]`
	if string(text) != want || m.Description != "Ours." || len(m.Capabilities) != 2 {
		t.Errorf("got  %s\nwant %s", text, want)
	}

	for _, c := range []struct {
		name   string
		change func(*plugin.Manifest, *contract.Described)
		want   string
	}{
		{"name", func(m *plugin.Manifest, d *contract.Described) { m.Name = "post" }, `code: at /name: the code says "mail", the manifest "post"`},
		{"version", func(m *plugin.Manifest, d *contract.Described) { m.Version = "2.0.0" }, `code: at /version: the code says "1.0.0", the manifest "2.0.0"`},
		{"an operation more", func(m *plugin.Manifest, d *contract.Described) { m.Operations = m.Operations[:1] }, `code: at /operations/send: the code has this operation, the manifest does not`},
		{"an operation less", func(m *plugin.Manifest, d *contract.Described) { delete(d.Operations, "count") }, `code: at /operations/count: the manifest has this operation, the code does not`},
		{"an effect more", func(m *plugin.Manifest, d *contract.Described) { m.Operations[1].Effects = nil }, `code: at /operations/send/effects: the code says "gmail_send", the manifest does not`},
		{"a service more", func(m *plugin.Manifest, d *contract.Described) { m.Capabilities = nil }, `code: at /capabilities: the code says "http", the manifest does not`},
		{"operator as tool", func(m *plugin.Manifest, d *contract.Described) {
			d.Operations["count"] = contract.DescribedOperation{Kind: plugin.Operator}
		}, `code: at /operations/count/kind: the code says operator, the manifest tool: a tool's results may be used again`},
		{"a broken schema", func(m *plugin.Manifest, d *contract.Described) {
			d.Operations["count"] = contract.DescribedOperation{Kind: plugin.Tool, Output: json.RawMessage(`3`)}
		}, `code: at /operations/count/output: the schema is refused a JSON Schema is an object or a boolean`},
	} {
		m, d := declared(), d
		d.Operations = map[string]contract.DescribedOperation{"send": d.Operations["send"], "count": d.Operations["count"]}
		c.change(m, &d)
		if _, err := contract.Merge(m, d); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func TestCodeThatSaysNothing(t *testing.T) {
	t.Parallel()
	m := &plugin.Manifest{Name: "a", Version: "1.0.0", Operations: []*plugin.Operation{{Name: "x"}}}
	if got, err := contract.Merge(m, contract.Described{}); err != nil || len(got.Operations) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := contract.Merge(&plugin.Manifest{Name: "a"}, contract.Described{}); err == nil {
		t.Error("a plugin without operations was accepted")
	}
	if _, err := contract.Merge(&plugin.Manifest{Name: "a", Version: "1.0.0"}, contract.Described{Name: "a", Operations: map[string]contract.DescribedOperation{
		"x": {Kind: "robot"}, "y/z": {Kind: plugin.Tool, Effects: []string{"a "}, Timeout: "never"}}}); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("got %v", err)
	}
	for _, c := range []struct{ result, name, want string }{
		{`{}`, "a", "names no plugin"}, {`[]`, "a", "reading"}, {described, "other", "the code describes mail, not other"},
		{`{"plugins":[{"name":"a"},{"name":"b"}]}`, "", "several plugins: a, b"},
	} {
		if _, err := contract.ParseDescribed([]byte(c.result), c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.result, err)
		}
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	m, err := runtime.Bind(runtime.Binding{PluginID: "example.echo", Command: []string{"bin/echo", "./x", "y"}, Dir: "/opt",
		Tools:   append(runtime.Tools("plugin.echo"), runtime.ToolBinding{Name: "a", Effects: []string{}, Timeout: time.Minute}),
		Effects: []string{"db_write"}, Capabilities: []string{"tool.execute"}, Context: map[string]string{"repo_root": "/r"}})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(m)
	want := `{"name":"example.echo","version":"0.0.0","dialect":"runtime","runner":{"kind":"process","command":["/opt/bin/echo","/opt/x","y"],"protocol":"1",` +
		`"binding":{"protocol_version":"rterm.plugin.v1","capabilities":["tool.execute"],"context":{"repo_root":"/r"}}},"isolation":"call",` +
		`"operations":[{"name":"a","kind":"operator","timeout":60000000000},{"name":"plugin.echo","kind":"operator","effects":["db_write"],"timeout":5000000000}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	_, err = runtime.Bind(runtime.Binding{PluginID: "bad id", Version: "1", Command: []string{"a/b"}, Tools: runtime.Tools("x", "X"),
		Capabilities: []string{"", " net", "fs", "fs"}, Timeout: -1})
	want = strings.TrimSpace(`
binding of "bad id": at /capabilities/0: it is empty
binding of "bad id": at /capabilities/1: " net" has white space around it
binding of "bad id": at /capabilities/3: "fs" stands here twice
binding of "bad id": at /command/0: "a/b" is a path that starts nowhere: write it as an absolute one
binding of "bad id": at /plugin_id: "bad id" is no name: a name is a letter and up to 127 letters, digits, dots, hyphens and underscores
binding of "bad id": at /tools/0/timeout: -1ns is not between 0 and 24h
binding of "bad id": at /tools/1: x stands here twice, letter case aside
binding of "bad id": at /tools/1/timeout: -1ns is not between 0 and 24h
binding of "bad id": at /version: "1" is no semantic version, such as 1.2.0`)
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"operations", "owner", "input", "Email.Send"}
	for _, c := range []struct{ word, want string }{{"operatoins", "operations"}, {"email.send", "Email.Send"}, {"ownr", "owner"}, {"zzz", ""}, {"xy", ""}, {"", ""}} {
		if got, _ := contract.Nearest(c.word, words); got != c.want {
			t.Errorf("%q: got %q, want %q", c.word, got, c.want)
		}
	}
}
